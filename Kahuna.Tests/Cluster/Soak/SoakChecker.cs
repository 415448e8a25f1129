using System.Globalization;
using System.Text;
using System.Threading.Channels;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.WatchStreams;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Checks the history of each key as soon as it is complete, on a thread of its own, and writes down what is asked for.
/// Keys do not depend on each other, so nothing is kept of one that was found good. Any thread adds; owned by one run.
/// </summary>
internal sealed class SoakChecker : IDisposable
{
    /// <summary>
    /// So much too early a key may expire (<see cref="CheckerOptions.TtlSlack"/>): whole milliseconds. All processes
    /// share the machine's monotonic clock, so nothing drifts, and a node reads it after it has taken in what it
    /// stamps.
    /// </summary>
    public static readonly TimeSpan TtlSlack = new CheckerOptions().TtlSlack;

    /// <summary>Half of what the checker takes by default: 125 to 250 MB for the hardest key.</summary>
    private const int StatesMax = 1_000_000;

    /// <summary>Complete keys that may wait; more hold the callers back.</summary>
    private const int WaitingMax = 64;

    /// <summary>
    /// To tell which operations contradict each other takes time; a few keys explain as much as many.
    /// </summary>
    private const int ExplainedMax = 3;

    /// <summary>Greater than those of callers.</summary>
    private const long WatchProcess = 1_000_000;

    private readonly SoakOptions _options;
    private readonly Channel<SoakKey> _waiting = Channel.CreateBounded<SoakKey>(
        new BoundedChannelOptions(WaitingMax) { SingleReader = true });
    private readonly TaskCompletionSource _found = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource _ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly StringBuilder _findings = new();
    private StreamWriter? _file;
    private int _checked;
    private int _violations;
    private int _undecided;

    public SoakChecker(SoakOptions options)
    {
        _options = options;
        _file = options.HistoryFile is { } file ? new StreamWriter(file) : null;
        new Thread(Run) { IsBackground = true, Name = "soak-checker" }.Start();
    }

    /// <summary>Completes as soon as something is wrong.</summary>
    public Task Found => _found.Task;

    /// <summary>Keys that were checked.</summary>
    public int Checked => Volatile.Read(ref _checked);

    /// <summary>Keys that are not linearizable, or of which the watch was told something else.</summary>
    public int Violations => Volatile.Read(ref _violations);

    public int Undecided => Volatile.Read(ref _undecided);

    /// <summary>A file was written, whole or with the keys that have a finding.</summary>
    public bool WroteFile => _file is not null;

    /// <summary>What is wrong, key by key; only after <see cref="FinishAsync"/>.</summary>
    public string Findings => _findings.ToString();

    public ValueTask AddAsync(SoakKey key) => _waiting.Writer.WriteAsync(key);

    /// <summary>Adds the last keys, and waits until all are checked and written.</summary>
    public async Task FinishAsync(IEnumerable<SoakKey> last)
    {
        foreach (SoakKey key in last)
        {
            await AddAsync(key);
        }

        _waiting.Writer.TryComplete();
        await _ended.Task;
    }

    /// <summary>
    /// Ends the thread, without the keys that still wait unless <see cref="FinishAsync"/> came before.
    /// </summary>
    public void Dispose()
    {
        _waiting.Writer.TryComplete();
        while (_waiting.Reader.TryRead(out _))
        {
        }
    }

    private void Run()
    {
        try
        {
            while (_waiting.Reader.WaitToReadAsync().AsTask().GetAwaiter().GetResult())
            {
                while (_waiting.Reader.TryRead(out SoakKey? key))
                {
                    Check(key);
                }
            }

            _file?.Dispose();
            _ended.SetResult();
        }
        catch (Exception error)
        {
            // Whoever adds, waits for the end or for a finding learns of it.
            _waiting.Writer.TryComplete(error);
            _found.TrySetException(error);
            _ended.SetException(error);
        }
    }

    private void Check(SoakKey key)
    {
        TimeSpan explain = _violations < ExplainedMax ? new CheckerOptions().ExplainTimeMax : TimeSpan.Zero;
        CheckerOptions checking = new() { TtlSlack = TtlSlack, StatesMax = StatesMax, ExplainTimeMax = explain };
        HistoryVerdict verdict = LinearizabilityChecker.Check(key.Operations, checking);
        List<WatchFinding> watched =
            key.Watch is { } watch ? WatchStreamChecker.Check(key.Operations, [watch], checking) : [];
        Interlocked.Increment(ref _checked);
        if (verdict.Verdict == Verdict.NotLinearizable || watched.Count > 0)
        {
            _findings.Append(verdict.Findings());
            watched.ForEach(finding => _findings.Append(CultureInfo.InvariantCulture, $"{finding}\n"));
            Interlocked.Increment(ref _violations);
            _found.TrySetResult();
        }
        else if (verdict.Verdict == Verdict.Undecided)
        {
            Interlocked.Increment(ref _undecided);
        }

        if (_options.HistoryFile is not null || verdict.Verdict != Verdict.Linearizable || watched.Count > 0)
        {
            Write(key);
        }
    }

    private void Write(SoakKey key)
    {
        if (_file is null)
        {
            Directory.CreateDirectory(Path.GetDirectoryName(_options.FindingsFile)!);
            _file = new StreamWriter(_options.FindingsFile);
        }

        HistoryWriter writer = new(_file);
        foreach (HistoryOperation operation in key.Operations)
        {
            writer.Write(operation);
        }

        if (key.Watch is { } watch)
        {
            WatchHistoryWriter.Write(_file, watch, WatchProcess);
        }
    }

    /// <summary>How the history that was written is checked once more.</summary>
    public string Command =>
        string.Create(
            CultureInfo.InvariantCulture,
            $"scripts/check-history.sh {_options.FindingsFile} --ttl-slack-ms {TtlSlack.TotalMilliseconds:0}");
}
