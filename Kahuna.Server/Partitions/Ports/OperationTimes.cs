using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Counts the answers of one loop: by operation and durability, how they ended and how long they took from the
/// arrival of the request to the end of the round that answered it. An answer costs a few nanoseconds and no memory
/// (docs/adr/0049-metrics.md). Tells which took long. Owned by one loop; any thread reads <see cref="Rows"/>.
/// </summary>
/// <param name="clock">The node's clock.</param>
/// <param name="longOnes">Gets the operations that took long; null: nobody asks.</param>
internal sealed class OperationTimes(TimeProvider clock, ILongOperations? longOnes = null)
{
    /// <summary>Answers that are gathered before the clock is read; a round of more reads it again.</summary>
    private const int GatheredMax = 512;

    /// <summary>Long operations of a round that are gathered before they are told.</summary>
    private const int ToldMax = 64;

    private const int Kinds = byte.MaxValue + 1;

    private const CommandTraits OfManyKeys =
        CommandTraits.IsList | CommandTraits.HasItems | CommandTraits.ReturnsValue;

    private readonly int _thresholdUs = longOnes?.ThresholdUs ?? int.MaxValue;

    private readonly OperationRow?[] _rows = new OperationRow?[2 * Kinds];
    private readonly (RequestTag Tag, OutcomeStatus Status, bool IsTold)[] _gathered =
        new (RequestTag Tag, OutcomeStatus Status, bool IsTold)[GatheredMax];
    private readonly List<LongOperation> _told = [];
    private int _count;
    private LongOperation? _late;
    private int _toldCount;
    private bool _isTelling;
    private uint _now;

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

    /// <summary>The present moment, as <see cref="Stamp"/> tells it.</summary>
    public uint Present => Stamp(clock);

    /// <summary>A round begins to apply and to answer.</summary>
    public void BeginAnswers() => _now = Stamp(clock);

    /// <summary>The moment of <see cref="BeginAnswers"/>.</summary>
    public uint AnswersBegan => _now;

    /// <summary>
    /// The next answer is that of this operation, which others want to know about: it has taken long already, or is
    /// traced. Followed by <see cref="Ended"/> or <see cref="Forget"/>.
    /// </summary>
    public void Tell(in RequestTag tag, GroupId group, in OperationStages stages, ReadOnlySpan<byte> key)
    {
        if (!IsWanted(tag, Worked(tag)))
        {
            return;
        }

        Next().Begin(
            tag, group, stages == default ? default : stages with { Applied = Stamp(clock) }, key);
        _isTelling = true;
    }

    /// <summary>The operation of <see cref="Tell"/> is not answered yet.</summary>
    public void Forget() => _isTelling = false;

    /// <summary>An answer is made; it leaves with its round.</summary>
    public void Ended(in RequestTag tag, OutcomeStatus status)
    {
        bool isTold = _isTelling;
        _isTelling = false;
        if (tag.Kind == 0)
        {
            return;
        }

        _gathered[_count++] = (tag, status, isTold);
        if (isTold)
        {
            _told[_toldCount++].Status = status;
        }

        if (_count == GatheredMax || _toldCount == ToldMax)
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
        foreach (ref readonly (RequestTag Tag, OutcomeStatus Status, bool IsTold) ended in _gathered.AsSpan(0, _count))
        {
            RequestTag tag = ended.Tag;
            ref OperationRow? row = ref _rows[tag.Kind + (tag.Durability == (byte)Durability.Ephemeral ? Kinds : 0)];
            if (row is null)
            {
                Volatile.Write(ref row, new OperationRow((CommandKind)tag.Kind, (Durability)tag.Durability));
            }

            row!.Add(ended.Status, (int)(now - tag.Stamp));
            if (!ended.IsTold && IsWanted(tag, now))
            {
                TellLate(tag, ended.Status, now);
            }
        }

        for (int i = 0; i < _toldCount; i++)
        {
            _told[i].Answered = now;
            longOnes!.Add(_told[i]);
        }

        _count = 0;
        _toldCount = 0;
    }

    /// <summary>
    /// It was not known to take long when its answer was made: of which key it was is not known any longer.
    /// </summary>
    private void TellLate(in RequestTag tag, OutcomeStatus status, uint now)
    {
        // An answer that is delayed until there is news has taken as long as its caller wanted.
        if (tag.Trace != 0 || !CommandKinds.Has((CommandKind)tag.Kind, CommandTraits.MayBeHeld))
        {
            LongOperation late = _late ??= new LongOperation();
            late.Begin(tag, group: null, default, []);
            late.Status = status;
            late.Answered = now;
            longOnes!.Add(late);
        }
    }

    /// <summary>When the operation was worked on: a command of many keys may have taken long by itself.</summary>
    private uint Worked(in RequestTag tag) =>
        longOnes is not null && CommandKinds.Has((CommandKind)tag.Kind, OfManyKeys) ? Stamp(clock) : _now;

    private LongOperation Next()
    {
        if (_toldCount == _told.Count)
        {
            _told.Add(new LongOperation());
        }

        return _told[_toldCount];
    }

    private bool IsWanted(in RequestTag tag, uint now) =>
        longOnes is not null && (tag.Trace != 0 || (int)(now - tag.Stamp) >= _thresholdUs);
}

/// <summary>
/// The time of a loop's turns: it stands still within a turn. It also tells whether the process was paused lately
/// (docs/adr/0020-failover.md). Owned by one loop; not thread-safe.
/// </summary>
/// <param name="pauseMs">A gap of more than this between two turns is a pause of the process.</param>
/// <param name="now">When the loop is built; valid until the first turn.</param>
internal sealed class TurnClock(int pauseMs, NodeTime now)
{
    private bool _hasTurned;

    /// <summary>When the turn began.</summary>
    public NodeTime Now { get; private set; } = now;

    /// <summary>When the first turn after the last pause began; 0 when there was none.</summary>
    public NodeTime Resumed { get; private set; }

    /// <summary>
    /// The process was paused a short time ago: what arrives now may have waited here as long as the pause lasted.
    /// </summary>
    public bool IsAfterPause => Resumed > default(NodeTime) && Now - Resumed < pauseMs;

    /// <summary>A turn begins.</summary>
    public void BeginTurn(NodeTime now)
    {
        // The time between the construction and the first turn is spent on loading what is stored.
        if (_hasTurned && now - Now > pauseMs)
        {
            Resumed = now;
        }

        _hasTurned = true;
        Now = now;
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
/// <param name="Trace">Where its trace is kept; 0: it is not traced.</param>
internal readonly record struct RequestTag(
    uint Number, uint Stamp = 0, byte Kind = 0, byte Durability = 0, ushort Trace = 0)
{
    public static implicit operator RequestTag(uint number) => new(number);
}

/// <summary>
/// When an operation passed the stages between its arrival and its answer; 0: it did not, or nobody looked. A value.
/// </summary>
/// <param name="Proposed">A write: it was proposed.</param>
/// <param name="Persisted">A write: the leader's own log had it on stable storage.</param>
/// <param name="Committed">A write: the leader knew that a majority has it.</param>
/// <param name="Confirmed">A read: a round has confirmed that the node leads.</param>
/// <param name="Applied">The state had it, or was read.</param>
internal readonly record struct OperationStages(
    uint Proposed = 0, uint Persisted = 0, uint Committed = 0, uint Confirmed = 0, uint Applied = 0);
