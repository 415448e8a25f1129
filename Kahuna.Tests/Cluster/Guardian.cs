using System.Diagnostics;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Kills the processes that it was told of when this one ends, however it ends: a shell that reads their numbers from a
/// pipe, and the end of the pipe is its signal. Owned by one
/// <see cref="ProcessCluster"/> or measurement; not thread-safe.
/// </summary>
internal sealed class Guardian : IDisposable
{
    private const string Script = """
        trap '' INT TERM HUP
        pids=
        while read -r change pid; do
          case $change in
            add) pids="$pids $pid " ;;
            remove) pids="${pids%% $pid *}${pids#* $pid }" ;;
          esac
        done
        set -- $pids
        [ $# -eq 0 ] || kill -KILL "$@" 2>/dev/null
        """;

    private readonly Process _shell = Process.Start(
        new ProcessStartInfo("/bin/sh", ["-c", Script]) { RedirectStandardInput = true })!;

    public void Add(int processId) => Tell("add", processId);

    public void Remove(int processId) => Tell("remove", processId);

    public void Dispose()
    {
        _shell.StandardInput.Close();
        _shell.WaitForExit();
        _shell.Dispose();
    }

    private void Tell(string change, int processId)
    {
        _shell.StandardInput.Write($"{change} {processId}\n");
        _shell.StandardInput.Flush();
    }
}
