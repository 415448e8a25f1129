using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Sequences;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What the callers of one client do with sequences. There are nine: two that have no end, one that ends soon and is
/// sometimes given more, one of which blocks are taken, one that is deleted now and then and begins with values that
/// show which incarnation they are of, one that begins again at its end, one that counts by more than one, one that
/// counts down, and one that counts down and begins again. Owned by one <see cref="SimClient"/>.
/// </summary>
internal sealed class SequenceCalls(SimCluster cluster, KahunaClient client)
{
    /// <summary>The sequence that is deleted.</summary>
    public const string Reborn = "sequence 4";

    /// <summary>The one that begins again at its end.</summary>
    public const string Cyclic = "sequence 5";

    /// <summary>The one that counts by more than one.</summary>
    public const string Wide = "sequence 6";

    /// <summary>The one that counts down.</summary>
    public const string Down = "sequence 7";

    /// <summary>The one that counts down and begins again at its end.</summary>
    public const string DownCyclic = "sequence 8";

    public const long WideFirst = 100;
    public const long WideStep = 7;
    public const long DownFirst = -2;
    public const long DownStep = -3;

    /// <summary>Values of the sequences that begin again.</summary>
    public const long CycleLength = 7;

    /// <summary>An incarnation begins at a multiple of it.</summary>
    public const long Incarnation = 1_000_000;

    private const int Sequences = 9;
    private const string ListRule = "lists hold what was there before they were asked for";
    private const string Bounded = "sequence 2";
    private const string Fast = "sequence 3";

    /// <summary>The last value of one of the sequences, as it is created and as it is changed.</summary>
    private const long SmallBound = 60;
    private const long LargerBound = 90;

    /// <summary>So many calls delete, or change, what they take from.</summary>
    private const double Changing = 0.08;

    /// <summary>The same for the sequence that is deleted: a key has to be used before and after it.</summary>
    private const double Deleting = 0.25;

    /// <summary>The part of the calls that have an idempotency key.</summary>
    private const double Keyed = 0.3;

    /// <summary>The same for the sequence that is deleted.</summary>
    private const double RebornKeyed = 0.6;

    /// <summary>For so long callers use the same idempotency keys: less than anybody remembers them.</summary>
    private const long KeyNs = 2_000_000_000;

    private static readonly SequenceOptions s_fast = new() { Mode = SequenceMode.Fast, BlockSize = 4 };

    /// <summary>Sequences that this client knows to exist, and that nobody deletes.</summary>
    private readonly HashSet<string> _created = [];

    public Call Draw(int process, SimRandom random)
    {
        string name = string.Create(CultureInfo.InvariantCulture, $"sequence {random.Next(Sequences)}");
        bool isPlain = name is not (Fast or Cyclic or DownCyclic);
        if (random.Chance(name == Reborn ? Deleting : Changing))
        {
            _ = ChangeAsync(name);
            _ = ListAsync();
        }

        return new Call
        {
            Process = process,
            Key = name,
            Kind = CallKind.Next,
            CallNs = cluster.Scheduler.NowNs,
            By = isPlain ? random.Between(1, 3) : 1,
            Bound = name switch { Bounded => LargerBound, Cyclic or DownCyclic => CycleLength, _ => long.MaxValue },
            IsFast = name == Fast,
            SequenceKey = isPlain && random.Chance(name == Reborn ? RebornKeyed : Keyed)
                ? $"key {random.Next(3)} of {cluster.Scheduler.NowNs / KeyNs}"
                : null,
        };
    }

    public async Task TakeAsync(Call call, CancellationToken ct)
    {
        try
        {
            if (call.IsFast)
            {
                call.First = call.Last = await client.Sequences.NextAsync(call.Key, s_fast, ct);
                return;
            }

            SequenceRange range = await client.Sequences.ReserveAsync(
                call.Key,
                call.By,
                call.SequenceKey is null ? null : new SequenceOptions { IdempotencyKey = call.SequenceKey },
                ct);
            (call.First, call.Last) = (range.First, range.Last);
        }
        catch (KahunaException missing) when (missing.Code == KahunaErrorCode.SequenceNotFound)
        {
            _ = CreateAsync(call.Key);
            throw;
        }
    }

    /// <summary>For the calls that follow; nobody waits for it.</summary>
    private async Task CreateAsync(string name)
    {
        SequenceDefinition definition = name switch
        {
            Bounded => new() { Max = SmallBound },
            Reborn => new() { Initial = cluster.History.NextValue() * Incarnation },
            Cyclic => new() { Max = CycleLength, Cycle = true },
            Wide => new() { Initial = WideFirst, Increment = WideStep },
            Down => new() { Initial = DownFirst, Increment = DownStep },
            DownCyclic => new() { Min = 1, Max = CycleLength, Increment = -1, Cycle = true },
            _ => new(),
        };
        try
        {
            await client.Sequences.CreateAsync(name, definition);
            if (name != Reborn)
            {
                _created.Add(name);
            }
        }
        catch (KahunaException)
        {
            // The next one tries again.
        }
    }

    /// <summary>
    /// A list holds every sequence that was there before it was asked for, each once and as it was created.
    /// </summary>
    private async Task ListAsync()
    {
        string[] expected = [.. _created];
        List<string> listed = [];
        try
        {
            await foreach (SequenceDescription sequence in client.Sequences.ListAsync("sequence "))
            {
                listed.Add(sequence.Name);
                long increment = sequence.Name switch { Wide => WideStep, Down => DownStep, DownCyclic => -1, _ => 1 };
                if (sequence.Increment != increment
                    || sequence.Cycle != (sequence.Name is Cyclic or DownCyclic))
                {
                    cluster.Rules.Break(ListRule, $"{sequence}");
                }
            }
        }
        catch (KahunaException)
        {
            // Not all of it came.
            return;
        }

        if (expected.Except(listed).FirstOrDefault() is { } missing)
        {
            cluster.Rules.Break(ListRule, $"{missing} is not in a list of {string.Join(", ", listed)}");
        }

        if (listed.Distinct().Count() != listed.Count)
        {
            cluster.Rules.Break(ListRule, $"twice in a list: {string.Join(", ", listed)}");
        }

        await DescribeAsync(expected);
    }

    /// <summary>So is each by itself.</summary>
    private async Task DescribeAsync(string[] expected)
    {
        try
        {
            if (expected.Length > 0 && await client.Sequences.GetAsync(expected[^1]) is null)
            {
                cluster.Rules.Break(ListRule, $"{expected[^1]} is not there");
            }
        }
        catch (KahunaException)
        {
            // Nobody says so.
        }
    }

    private async Task ChangeAsync(string name)
    {
        try
        {
            if (name == Reborn)
            {
                await client.Sequences.DeleteAsync(name);
            }
            else if (name == Bounded)
            {
                await client.Sequences.UpdateAsync(name, new SequenceChange { Max = LargerBound });
            }
        }
        catch (KahunaException)
        {
            // It is as it was, or changed.
        }
    }
}
