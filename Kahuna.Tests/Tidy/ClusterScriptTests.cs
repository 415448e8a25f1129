using System.Diagnostics;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// The script takes no node for dead that is still in exec, and none for ready that does not say so. Server, curl and
/// tr are stand-ins.
/// </summary>
public sealed class ClusterScriptTests : IDisposable
{
    /// <summary>
    /// Looks like the server for a moment, as setsid and env do, then has no command line, and becomes the server.
    /// </summary>
    private const string Setsid = """
        #!/usr/bin/env bash
        shift 6
        printf '%q ' "$@" >"$STAND_INS/arguments"
        sleep 1
        exec -a "" bash -c 'sleep 2; : >"$STAND_INS/healthy"; eval "set -- $(cat "$STAND_INS/arguments")"; exec -a dotnet bash -c "while :; do sleep 1; done" server "$@"'
        """;

    /// <summary>
    /// A node that is ready when the test says so, for one look. When that is asked for the first time, its command
    /// line cannot be read for once.
    /// </summary>
    private const string Curl = """
        #!/usr/bin/env bash
        for url; do :; done
        [[ "$url" == */readyz ]] && rm "$STAND_INS/ready-once" 2>/dev/null && exit 0
        [[ "$url" != */readyz || -e "$STAND_INS/asked" ]] || : | tee "$STAND_INS/asked" >"$STAND_INS/blink"
        [[ "$url" == --version ]] || [[ "$url" == */healthz && -e "$STAND_INS/healthy" ]]
        """;

    private const string Tr = """
        #!/usr/bin/env bash
        [[ -e "$STAND_INS/blink" ]] || exec "$REAL_TR" "$@"
        rm "$STAND_INS/blink"
        """;

    private readonly TemporaryDirectory _cluster = new();
    private readonly TemporaryDirectory _standIns = new();

    public ClusterScriptTests()
    {
        foreach ((string name, string text) in new[] { ("setsid", Setsid), ("curl", Curl), ("tr", Tr) })
        {
            string path = _standIns.File(name, text);
            if (!OperatingSystem.IsWindows())
            {
                File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserExecute);
            }
        }

        _cluster.File("ports", string.Join(' ', ProcessCluster.FreePorts(3)) + "\n");
        _cluster.File("secret", "secret");
        Directory.CreateDirectory(Path.Combine(_cluster.Path, "logs"));
        Directory.CreateDirectory(Path.Combine(_cluster.Path, "pids"));
    }

    public void Dispose()
    {
        Run("down");
        _cluster.Dispose();
        _standIns.Dispose();
    }

    [Fact]
    public void A_node_in_exec_is_not_dead_and_one_that_is_not_ready_is_not_called_so()
    {
        (int exitCode, string said) = Run("start", "1");
        Assert.Contains("node 1 runs (pid ", said, StringComparison.Ordinal);
        Assert.Equal(0, exitCode);

        (exitCode, said) = Run("start", "2");
        Assert.DoesNotContain("node 2 is ready", said, StringComparison.Ordinal);
        Assert.Equal(1, exitCode);

        // It may be between two leaders at the next look.
        _standIns.File("ready-once", "");
        (exitCode, said) = Run("start", "3");
        Assert.Contains("node 3 is ready", said, StringComparison.Ordinal);
        Assert.Equal(0, exitCode);
    }

    private (int ExitCode, string Said) Run(params string[] arguments)
    {
        ProcessStartInfo start = new(Repository.FullPath("scripts/cluster.sh"), arguments)
        {
            RedirectStandardError = true,
            RedirectStandardInput = true,
        };
        start.Environment["STAND_INS"] = _standIns.Path;
        start.Environment["REAL_TR"] = File.Exists("/usr/bin/tr") ? "/usr/bin/tr" : "/bin/tr";
        start.Environment["PATH"] = $"{_standIns.Path}:{Environment.GetEnvironmentVariable("PATH")}";
        start.Environment["KAHUNA_CLUSTER_DIR"] = _cluster.Path;
        start.Environment["KAHUNA_CLUSTER_TIMEOUT"] = "60";
        using Process process = Process.Start(start)!;
        process.StandardInput.Close();
        string said = process.StandardError.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, said);
    }
}
