using System.Text.Json;
using Kahuna.Tests.Cluster;

namespace Kahuna.Tests.Tools.Processes;

/// <summary>
/// One server process of a measurement, its data and its log. Owned by a program or its <see cref="ServerCluster"/>;
/// not thread-safe.
/// </summary>
internal sealed class ServerNode(Measurement run, ServerPlace place, params IEnumerable<string> options)
{
    private static readonly HttpClient s_http = new(new SocketsHttpHandler
    {
        SslOptions = { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
    })
    {
        Timeout = TimeSpan.FromSeconds(5),
    };

    private readonly string _log = Path.Combine(place.Directory, $"node{place.Number}.log");
    private Child? _process;

    public int Number => place.Number;

    public string Url => place.Url;

    public string Data { get; } = run.PathOf(Path.Combine(place.Directory, $"node{place.Number}"));

    public int ProcessId => _process?.Id ?? 0;

    public bool IsAlive => _process is { HasExited: false };

    public bool IsReady => Fetch("/readyz") is not null;

    public bool IsHealthy => Fetch("/healthz") is not null;

    /// <summary>Bytes in the log, to read from there later.</summary>
    public long LogPosition => new FileInfo(run.PathOf(_log)).Length;

    public string LogEnd => $"the end of its log:\n{_process?.LogEnd}";

    public double ProcessorSeconds => ProcFiles.ProcessorSeconds(ProcessId);

    public MemoryUse Memory => ProcFiles.Memory(ProcessId);

    public string LogSince(long position) => Child.ReadShared(run.PathOf(_log), position);

    /// <summary>Starts the process and does not wait for it.</summary>
    public void Start(params string[] more)
    {
        Directory.CreateDirectory(run.PathOf(place.Directory));
        _process = run.Start(
            _log, [.. place.Inside, "dotnet", place.Server, "--data", Data, "--listen", Url, .. options, .. more]);
    }

    public void Send(int signal) => _process!.Send(signal);

    public void Kill() => _process?.Kill();

    public void Stop() => _process?.Stop(20);

    /// <summary>Waits until the condition holds; fails at once when the process ends.</summary>
    public void Await(double seconds, string what, Func<bool> condition, double pause = 0.05) =>
        run.WaitFor(seconds, $"node {Number} {what}",
        () => IsAlive ? condition() : throw new MeasureException($"node {Number} ended; {LogEnd}"), pause);

    /// <summary>What the node says of itself; null when it does not answer.</summary>
    public NodeStatus? Status() =>
        Fetch("/status") is { } body ? JsonSerializer.Deserialize<NodeStatus>(body, JsonSerializerOptions.Web) : null;

    public NodeStatus RequireStatus() =>
        Status() ?? throw new MeasureException($"node {Number} does not answer; {LogEnd}");

    /// <summary>The sum of all series of a metric.</summary>
    public double Metric(string name) =>
        (Fetch("/metrics") ?? throw new MeasureException($"node {Number} does not answer; {LogEnd}"))
        .Split('\n').Where(line => line.StartsWith(name, StringComparison.Ordinal) && line[name.Length] is '{' or ' ')
        .Sum(static line => double.Parse(line.AsSpan(line.LastIndexOf(' '))));

    /// <summary>Bytes allocated by the log and by everything else in the data directory.</summary>
    public DiskUse Disk()
    {
        DiskUse used = default;

        // A file that is cut or compacted meanwhile is no fault.
        string files = Child.Read("sh", "-c", "find \"$0\" -type f -printf '%b %P\\n' 2>/dev/null || true", Data);
        foreach (string line in files.Split('\n', StringSplitOptions.RemoveEmptyEntries))
        {
            string[] file = line.Split(' ', 2);
            long bytes = 512 * long.Parse(file[0]);
            used += file[1].StartsWith("log/", StringComparison.Ordinal)
                ? new DiskUse(bytes, 0) : new DiskUse(0, bytes);
        }

        return used;
    }

    private string? Fetch(string path)
    {
        if (place.AskInside.Count > 0)
        {
            return Child.TryRead(
                [.. place.AskInside, "curl", "--silent", "--fail", "--insecure", "--max-time", "2", Url + path]);
        }

        try
        {
            using HttpRequestMessage request = new(HttpMethod.Get, Url + path);
            using HttpResponseMessage answer = s_http.Send(request);
            using StreamReader body = new(answer.Content.ReadAsStream());
            return answer.IsSuccessStatusCode ? body.ReadToEnd() : null;
        }
        catch (Exception error) when (error is HttpRequestException or TaskCanceledException or IOException)
        {
            return null;
        }
    }
}
