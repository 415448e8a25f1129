using System.Diagnostics;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Makes system calls of a running node fail with an error of the disk, by strace, until it is disposed or the node
/// ends. Owned by one test.
/// </summary>
internal sealed class DiskFault : IDisposable
{
    private readonly Process _strace;

    private DiskFault(Process strace) => _strace = strace;

    /// <summary>Attaches to the node; from the return on, every one of the calls in any of its threads fails.</summary>
    public static async Task<DiskFault> InjectAsync(
        ProcessCluster cluster, NodeProcess node, string calls, string error)
    {
        string trace = cluster.ScratchFile("strace.txt");
        Process strace = Process.Start(new ProcessStartInfo(
            "strace",
            [
                "-f",
                "-q",
                "-o",
                trace,
                "-e",
                $"trace={calls}",
                "-e",
                $"inject={calls}:error={error}",
                "-p",
                $"{node.ProcessId}",
            ])
        { RedirectStandardError = true })!;
        Task<string> messages = strace.StandardError.ReadToEndAsync();
        try
        {
            // Under load the node may meet the fault, and end, before it is seen to be held.
            await Eventually.TrueAsync(LastNet.Span, $"strace holds every thread of node {node.Id}", async () =>
            {
                if (strace.HasExited)
                {
                    await Task.Delay(500);
                    return node.IsRunning
                        ? throw new InvalidOperationException(
                            $"strace ended with exit code {strace.ExitCode}: {await messages}")
                        : true;
                }

                return !node.IsRunning || IsTraced(node.ProcessId);
            });
        }
        catch
        {
            strace.Kill();
            strace.Dispose();
            throw;
        }

        return new DiskFault(strace);
    }

    public void Dispose()
    {
        if (!_strace.HasExited)
        {
            _strace.Kill();
            _strace.WaitForExit();
        }

        _strace.Dispose();
    }

    private static bool IsTraced(int processId)
    {
        try
        {
            return Directory.EnumerateDirectories($"/proc/{processId}/task")
                .All(task => !File.ReadLines(Path.Combine(task, "status")).Contains("TracerPid:\t0"));
        }
        catch (IOException)
        {
            // A thread ended between the listing and the look at it.
            return false;
        }
    }
}
