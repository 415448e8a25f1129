using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Counts the answers of one loop: by operation and durability, how they ended and how long they took from the
/// arrival of the request to the end of the round that answered it. An answer costs a few nanoseconds and no memory
/// (docs/adr/0049-metrics.md). Owned by one loop; any thread reads <see cref="Rows"/>.
/// </summary>
/// <param name="clock">The node's clock.</param>
internal sealed class OperationTimes(TimeProvider clock)
{
    /// <summary>Answers that are gathered before the clock is read; a round of more reads it again.</summary>
    private const int GatheredMax = 512;

    private const int Kinds = byte.MaxValue + 1;

    private readonly OperationRow?[] _rows = new OperationRow?[2 * Kinds];
    private readonly (RequestTag Tag, OutcomeStatus Status)[] _gathered =
        new (RequestTag Tag, OutcomeStatus Status)[GatheredMax];
    private int _count;

    /// <summary>What was counted, a row for each operation and durability that has occurred.</summary>
    public IEnumerable<OperationRow> Rows
    {
        get
        {
            for (int i = 0; i < _rows.Length; i++)
            {
                if (Volatile.Read(ref _rows[i]) is { } row)
                {
                    yield return row;
                }
            }
        }
    }

    /// <summary>
    /// How long claims for locks waited, from the first time that their clients asked this leader until they were
    /// granted or given up.
    /// </summary>
    public DurationHistogram LockWaits { get; } = new();

    /// <summary>A moment, in microseconds of the clock; it begins anew after 71 minutes.</summary>
    public static uint Stamp(TimeProvider clock) =>
        unchecked((uint)(long)(clock.GetTimestamp() * (1_000_000.0 / clock.TimestampFrequency)));

    /// <summary>An answer is made; it leaves with its round.</summary>
    public void Ended(in RequestTag tag, OutcomeStatus status)
    {
        if (tag.Kind == 0)
        {
            return;
        }

        _gathered[_count++] = (tag, status);
        if (_count == GatheredMax)
        {
            EndRound();
        }
    }

    /// <summary>The answers of a round leave.</summary>
    public void EndRound()
    {
        if (_count == 0)
        {
            return;
        }

        uint now = Stamp(clock);
        foreach (ref readonly (RequestTag Tag, OutcomeStatus Status) ended in _gathered.AsSpan(0, _count))
        {
            RequestTag tag = ended.Tag;
            ref OperationRow? row = ref _rows[tag.Kind + (tag.Durability == (byte)Durability.Ephemeral ? Kinds : 0)];
            if (row is null)
            {
                Volatile.Write(ref row, new OperationRow((CommandKind)tag.Kind, (Durability)tag.Durability));
            }

            row!.Add(ended.Status, (int)(now - tag.Stamp));
        }

        _count = 0;
    }
}

/// <summary>
/// The answers to one operation of one durability. One thread at a time adds; any thread reads.
/// </summary>
/// <param name="kind">The operation.</param>
/// <param name="durability">The durability.</param>
internal sealed class OperationRow(CommandKind kind, Durability durability)
{
    /// <summary>More than <see cref="OutcomeStatus"/> has.</summary>
    public const int Statuses = 128;

    private readonly long[] _byStatus = new long[Statuses];

    public CommandKind Kind => kind;

    public Durability Durability => durability;

    /// <summary>How long they took.</summary>
    public DurationHistogram Times { get; } = new();

    /// <summary>Answers with this status.</summary>
    public long Count(OutcomeStatus status) => Volatile.Read(ref _byStatus[(int)status]);

    /// <summary>Adds an answer.</summary>
    /// <param name="status">How it ended.</param>
    /// <param name="us">How long it took, in microseconds.</param>
    public void Add(OutcomeStatus status, long us)
    {
        ref long count = ref _byStatus[(int)status & (Statuses - 1)];
        Volatile.Write(ref count, count + 1);
        Times.Add(us);
    }
}

/// <summary>
/// By what an answer is known: the number by which its client knows it, and what it is counted as. A value.
/// </summary>
/// <param name="Number">The request's number on its stream.</param>
/// <param name="Stamp">When it came in (<see cref="OperationTimes.Stamp"/>).</param>
/// <param name="Kind">The kind of its command; 0: it is not counted.</param>
/// <param name="Durability">The durability of its command.</param>
internal readonly record struct RequestTag(uint Number, uint Stamp = 0, byte Kind = 0, byte Durability = 0)
{
    public static implicit operator RequestTag(uint number) => new(number);
}
