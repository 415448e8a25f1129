using System.Diagnostics;
using Kahuna.Benchmark.Verification;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Sequences;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Callers that want locks of both levels and the values of one sequence, while everything else goes on. What they get
/// is written down, and judged at the end as <c>kahuna-bench --verify</c> does. Owned by one run.
/// </summary>
internal sealed class SoakLedgers : IAsyncDisposable
{
    private const string Sequence = "soak/sequence";
    private const int Locks = 2;
    private const int LockCallers = 8;
    private const int SequenceCallers = 4;

    // What a holder does, and what it waits for its turn; the leases are so short that kills and pauses outlast some.
    private const double HeldMs = 3;
    private const double ThinkMs = 10;
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(2);
    private static readonly TimeSpan s_wait = TimeSpan.FromSeconds(5);

    private readonly KahunaClient _client;

    /// <summary>For what is asked once, before and after the faults.</summary>
    private readonly KahunaClient _patient;
    private readonly SoakOptions _options;
    private readonly LockLedger _locks = new();
    private readonly SequenceLedger _values = new();
    private readonly CancellationTokenSource _stop = new();
    private Task[] _running = [];

    public SoakLedgers(ProcessCluster cluster, SoakOptions options)
    {
        _client = cluster.Connect(TimeSpan.FromSeconds(10));
        _patient = cluster.Connect(LastNet.Call);
        _options = options;
    }

    /// <summary>Makes the sequence, while the cluster is whole, and begins.</summary>
    public async Task StartAsync()
    {
        await _patient.Sequences.CreateAsync(Sequence, new SequenceDefinition());
        _running =
        [
            .. Enumerable.Range(0, LockCallers).Select(number => Task.Run(() => LockAsync(number, _locks.Open()))),
            .. Enumerable.Range(0, SequenceCallers)
                .Select(number => Task.Run(() => CountAsync(number, _values.Open()))),
        ];
    }

    /// <summary>Ends as soon as a caller does, which only happens when something is wrong.</summary>
    public Task Broken => Task.WhenAny(_running).Unwrap();

    /// <summary>Nobody begins anything more; what was found.</summary>
    /// <exception cref="SoakException">A promise was broken, or nothing was done.</exception>
    public async Task<string> StopAsync(TimeSpan within)
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_running).WaitAsync(within);
        _values.After = (await _patient.Sequences.GetAsync(Sequence))?.Latest;
        LockFindings locks = _locks.Check();
        SequenceFindings values = _values.Check();
        if (!locks.IsGood || !values.IsGood || locks.Grants == 0 || values.Values == 0)
        {
            throw new SoakException($"locks: {locks}; sequence: {values}");
        }

        return $"locks {locks}; sequence {values}";
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await _client.DisposeAsync();
        await _patient.DisposeAsync();
        _stop.Dispose();
    }

    private async Task LockAsync(int number, LockLedger.Page page)
    {
        SimRandom random = new SimRandom(_options.Seed).Fork(30_000 + (ulong)number);
        bool isEphemeral = number % 2 == 1;
        string name = $"soak/{number / 2 % Locks}/lock";
        LockOptions options = new() { Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent };
        while (!_stop.IsCancellationRequested)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(random.Exponential(ThinkMs)), CancellationToken.None);
            long start = Stopwatch.GetTimestamp();
            LockHandle handle;
            try
            {
                handle = await _client.Locks.AcquireAsync(name, s_lease, s_wait, options, CancellationToken.None);
            }
            catch (KahunaException)
            {
                // Whoever is not told of a grant does not count on it.
                continue;
            }

            long came = Stopwatch.GetTimestamp();
            await Task.Delay(TimeSpan.FromMilliseconds(random.Exponential(HeldMs)), CancellationToken.None);
            long until = handle.Remaining > TimeSpan.Zero ? Stopwatch.GetTimestamp() : came;
            page.Begin();
            page.Got(new LockLedger.Entry($"{isEphemeral} {name}", handle.Token.Value, start, came, until));
            await handle.DisposeAsync();
        }
    }

    private async Task CountAsync(int number, SequenceLedger.Page page)
    {
        SimRandom random = new SimRandom(_options.Seed).Fork(40_000 + (ulong)number);
        while (!_stop.IsCancellationRequested)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(random.Exponential(ThinkMs)), CancellationToken.None);
            long start = Stopwatch.GetTimestamp();
            page.Begin();
            try
            {
                SequenceRange range = await _client.Sequences.ReserveAsync(Sequence, 1);
                page.Got(new SequenceLedger.Entry(range.First, start, Stopwatch.GetTimestamp()));
            }
            catch (KahunaException failure) when (failure.Outcome == OperationOutcome.DidNotHappen)
            {
                page.GotNothing();
            }
            catch (KahunaException)
            {
                // It stays open: it may have taken a value.
            }
        }
    }
}
