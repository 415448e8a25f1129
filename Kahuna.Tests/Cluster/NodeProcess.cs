using System.Diagnostics;
using System.Globalization;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// One kahuna-server process and its log, which collects what all starts of the node wrote. Owned by one
/// <see cref="ProcessCluster"/>; not thread-safe.
/// </summary>
internal sealed class NodeProcess(
    int id, string url, string directory, IReadOnlyList<string> options, Guardian guardian)
    : IDisposable
{
    private Process? _process;

    public int Id => id;

    public string Url => url;

    public string DataDirectory { get; } = Path.Combine(directory, $"node{id}");

    public string LogFile { get; } = Path.Combine(directory, $"node{id}.log");

    private string DeafFile => $"{LogFile}.deaf";

    public bool IsRunning => _process is { HasExited: false };

    public int ProcessId => _process?.Id ?? throw new InvalidOperationException($"Node {id} was never started.");

    public int ExitCode => _process!.ExitCode;

    /// <summary>
    /// The next start supports one feature level more than the build (<see cref="TestFeatures"/>); needs
    /// <c>--cluster-id test-…</c>.
    /// </summary>
    public bool IsRaised { get; set; }

    /// <summary>
    /// The node drops the frames of the nodes that a file beside its log names (<see cref="Ignore"/>); needs
    /// <c>--cluster-id test-…</c>.
    /// </summary>
    public bool CanBeDeaf { get; set; }

    /// <summary>Further variables of the environment of the next starts.</summary>
    public Dictionary<string, string> Variables { get; } = [];

    /// <summary>Limit of file descriptors for the next start; null leaves it as it is.</summary>
    public int? Descriptors { get; set; }

    /// <summary>Hard limit of the managed heap for the next start; null leaves it to the runtime.</summary>
    public long? HeapBytesMax { get; set; }

    /// <summary>
    /// Everything that a server process in these tests gets: no option from the environment of the person who runs
    /// them.
    /// </summary>
    public static ProcessStartInfo StartInfo(string certificates, string logFile, IEnumerable<string> options)
    {
        // The shell turns into the server, so the process number is the server's.
        ProcessStartInfo start = new(
            "/bin/sh",
            ["-c", "exec \"$@\" >>\"$KAHUNA_TEST_LOG\" 2>&1 </dev/null", "sh", Dotnet, ServerAssembly, .. options]);
        foreach (string name in start.Environment.Keys.Where(
            name => name.StartsWith("KAHUNA_", StringComparison.Ordinal)).ToList())
        {
            start.Environment.Remove(name);
        }

        start.Environment["KAHUNA_DEV_CERT_DIR"] = certificates;
        start.Environment["KAHUNA_TEST_LOG"] = logFile;
        return ShortLived.Prepare(start);
    }

    /// <param name="more">Further options, for this start only.</param>
    public void Start(params string[] more)
    {
        if (IsRunning)
        {
            throw new InvalidOperationException($"Node {id} runs already.");
        }

        _process?.Dispose();
        ProcessStartInfo start = StartInfo(Path.Combine(directory, "certificates"), LogFile, [.. options, .. more]);
        if (Descriptors is { } limit)
        {
            start.ArgumentList[1] = $"ulimit -n {limit}; {start.ArgumentList[1]}";
        }

        if (IsRaised)
        {
            start.Environment[TestFeatures.Variable] = TestFeatures.Next;
        }

        if (CanBeDeaf)
        {
            start.Environment[TestFeatures.DeafVariable] = DeafFile;
        }

        if (HeapBytesMax is { } heap)
        {
            start.Environment["DOTNET_GCHeapHardLimit"] = heap.ToString("x", CultureInfo.InvariantCulture);
        }

        foreach ((string name, string value) in Variables)
        {
            start.Environment[name] = value;
        }

        _process = Process.Start(start)!;
        guardian.Add(_process.Id);
    }

    public void Kill()
    {
        Signal.Send(ProcessId, Signal.Kill);
        WaitForExit(LastNet.Span);
    }

    public void SendKill() => Signal.Send(ProcessId, Signal.Kill);

    /// <summary>The node drops the frames of these nodes from now on, within 20 ms.</summary>
    public void Ignore(IEnumerable<int> nodes)
    {
        string written = DeafFile + ".new";
        File.WriteAllText(written, string.Join(',', nodes));
        File.Move(written, DeafFile, overwrite: true);
    }

    public void Pause() => Signal.Send(ProcessId, Signal.Stop);

    public void Resume() => Signal.Send(ProcessId, Signal.Continue);

    /// <summary>SIGTERM, and the exit code.</summary>
    public int Stop()
    {
        Signal.Send(ProcessId, Signal.Terminate);
        WaitForExit(LastNet.Span);
        return ExitCode;
    }

    public void WaitForExit(TimeSpan within)
    {
        if (!_process!.WaitForExit(within))
        {
            throw new TimeoutException($"Node {id} still runs after {within.TotalSeconds:0} s.");
        }

        guardian.Remove(_process.Id);
    }

    public string Log()
    {
        if (!File.Exists(LogFile))
        {
            return "";
        }

        using FileStream stream = new(LogFile, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        using StreamReader reader = new(stream);
        return reader.ReadToEnd();
    }

    public void Dispose()
    {
        if (_process is { HasExited: false })
        {
            Signal.Send(_process.Id, Signal.Kill);
            _process.WaitForExit();
            guardian.Remove(_process.Id);
        }

        _process?.Dispose();
    }

    private static string Dotnet => Environment.GetEnvironmentVariable("DOTNET_HOST_PATH") ?? "dotnet";

    private static string ServerAssembly => Path.Combine(AppContext.BaseDirectory, "kahuna-server.dll");
}
