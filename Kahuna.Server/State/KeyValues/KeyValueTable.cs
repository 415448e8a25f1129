using System.Buffers.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// The keys of one partition: carries out sets, deletes, extensions and increments with their conditions, and what
/// leaders propose about keys. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class KeyValueTable : CommandHandler
{
    private readonly KeyStore _store;
    private readonly TransactionRunner _transactions;
    private readonly ScriptRunner _scripts;

    public KeyValueTable(KeyStore store)
    {
        _store = store;
        _transactions = new TransactionRunner(store, this);
        _scripts = new ScriptRunner(store, this);
        Prepared = new PreparedTransactions(store, _transactions);
    }

    /// <summary>The group's share of transactions over several partitions.</summary>
    public PreparedTransactions Prepared { get; }

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        switch (command.Kind)
        {
            case CommandKind.ExpireSweep:
                answer.Give(new Outcome(OutcomeStatus.Applied, 0, ExpirySweep.Apply(_store, in command, time)));
                break;
            case CommandKind.Evict:
                Eviction.Apply(_store, in command);
                break;
            case CommandKind.KeyRangeDelete:
                RangeDelete.Apply(_store, in command, time, answer);
                break;
            case CommandKind.Transaction:
                _transactions.Apply(in command, time, answer);
                break;
            case CommandKind.Script:
                _scripts.Apply(in command, time, answer);
                break;
            case CommandKind.TransactionPrepare:
                Prepared.Prepare(in command, time, answer);
                break;
            case CommandKind.TransactionDecide:
                Prepared.Decide(in command, time, answer);
                break;
            case CommandKind.TransactionFinish:
                Prepared.Finish(in command, time, answer);
                break;
            case CommandKind.TransactionForget:
                Prepared.Forget(in command, answer);
                break;
            default:
                ApplyToKey(in command, time, _store.Keys.HashOf(command.Key, known), answer);
                break;
        }
    }

    /// <inheritdoc/>
    public override bool Read(
        scoped in Command command, ClusterTime time, ClusterTime now, KnownHash known, ByteBuffer outcome)
    {
        switch (command.Kind)
        {
            case CommandKind.KeyRange:
                RangeReader.Read(_store, new RangeRequest(in command), time, outcome);
                break;
            case CommandKind.GetMany:
                TransactionRunner.ReadMany(_store, in command, time, now, outcome);
                break;
            default:
                KeyReader.Read(_store, in command, time, now, outcome, known);
                break;
        }

        return true;
    }

    /// <summary>The range as it is now, for pages to come. The caller disposes it.</summary>
    /// <param name="asked">The range.</param>
    /// <param name="time">Cluster time of the last applied entry.</param>
    /// <param name="budget">What the cuts of the partition may keep.</param>
    public RangeCut OpenCut(scoped in RangeRequest asked, ClusterTime time, CutBudget budget) =>
        new(_store, in asked, time, budget);

    /// <summary>Appends the outcome of a page of a cut that is not over.</summary>
    public void ReadCut(RangeCut cut, scoped in RangeRequest asked, ByteBuffer outcome) =>
        RangeReader.Read(_store, in asked, cut.Time, outcome, cut);

    /// <summary>
    /// True for a write of a key that a transaction holds. It is answered here, and its number may come again.
    /// </summary>
    public bool Refuses(scoped in Command command, CommandAnswer answer)
    {
        if (_store.Prepared.Count == 0 || !Prepared.Refuses(in command))
        {
            return false;
        }

        answer.ForgetNumber();
        answer.Give(new Outcome(OutcomeStatus.KeyInTransaction));
        return true;
    }

    /// <inheritdoc cref="Eviction.TryChoose"/>
    public bool TryChooseVictims(ByteBuffer names, int namesBytesMax, ref long bytes) =>
        Eviction.TryChoose(_store, names, namesBytesMax, ref bytes);

    /// <inheritdoc cref="ExpirySweep.CountDue"/>
    public int CountDue(ClusterTime now, int countMax) => ExpirySweep.CountDue(_store, now, countMax);

    /// <inheritdoc cref="ScriptRunner.StepsOf"/>
    public int ScriptStepsOf(scoped in Command command) => _scripts.StepsOf(in command);

    /// <summary>Carries out a command that writes one key.</summary>
    public void ApplyToKey(scoped in Command command, ClusterTime time, uint hash, CommandAnswer answer)
    {
        Row key = _store.Keys.Find(command.Key, hash);
        if (!key.IsNone)
        {
            _store.Expire(key, time);
        }

        switch (command.Kind)
        {
            case CommandKind.Set:
                Set(in command, key, hash, time, answer);
                break;
            case CommandKind.Delete:
                Delete(in command, key, time, answer);
                break;
            case CommandKind.Extend:
                Extend(in command, key, time, answer);
                break;
            case CommandKind.Increment:
                Increment(in command, key, hash, time, answer);
                break;
            default:
                throw NoSuchCommand(command.Kind);
        }
    }

    private void Set(scoped in Command command, Row key, uint hash, ClusterTime time, CommandAnswer answer)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        bool isNull = command.Has(CommandFlags.NullValue);
        Written(in command, key, answer);
        if (key.IsNone)
        {
            key = _store.Create(command.Key, hash, command.Value, isNull);
        }
        else
        {
            _store.Write(key, command.Value, isNull, HistoryOf(in command, time));
        }

        if (command.Has(CommandFlags.Ttl))
        {
            _store.SetDeadline(key, DeadlineAfter(time, command.TtlMs));
        }
        else
        {
            _store.ClearDeadline(key);
        }
    }

    private void Delete(scoped in Command command, Row key, ClusterTime time, CommandAnswer answer)
    {
        if (!_store.Exists(key))
        {
            NotFound(answer);
        }
        else if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
        }
        else
        {
            Written(in command, key, answer);
            _store.Delete(key, HistoryOf(in command, time));
        }
    }

    private void Extend(scoped in Command command, Row key, ClusterTime time, CommandAnswer answer)
    {
        if (!_store.Exists(key))
        {
            NotFound(answer);
            return;
        }

        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        if (command.TtlMs == 0)
        {
            _store.ClearDeadline(key);
        }
        else
        {
            _store.SetDeadline(key, DeadlineAfter(time, command.TtlMs));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, _store.Keys[key].Revision.Value));
    }

    private void Increment(scoped in Command command, Row key, uint hash, ClusterTime time, CommandAnswer answer)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        Revision revision = RevisionBefore(key);
        OutcomeStatus status = TryAdd(key, command.Number, out long sum);
        if (status != OutcomeStatus.Applied)
        {
            answer.Give(new Outcome(status, revision.Value, status == OutcomeStatus.Overflow ? sum : 0));
            return;
        }

        Span<byte> scratch = stackalloc byte[DecimalText.BytesMax];
        ReadOnlySpan<byte> text = DecimalText.Write(sum, scratch);
        if (key.IsNone)
        {
            _store.Create(command.Key, hash, text, isNull: false);
        }
        else
        {
            _store.Write(key, text, isNull: false, HistoryOf(in command, time));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, revision.Next().Value, sum));
    }

    /// <summary>
    /// What an increment gives: Applied with the sum, NotAnInteger, or Overflow with the integer that is there.
    /// </summary>
    public OutcomeStatus TryAdd(Row key, long amount, out long sum)
    {
        long before = 0;
        if (_store.Exists(key)
            && (_store.Keys[key].IsNull || !DecimalText.TryRead(_store.Keys.Value(in _store.Keys[key]), out before)))
        {
            sum = 0;
            return OutcomeStatus.NotAnInteger;
        }

        sum = unchecked(before + amount);
        if (((before ^ sum) & (amount ^ sum)) < 0)
        {
            sum = before;
            return OutcomeStatus.Overflow;
        }

        return OutcomeStatus.Applied;
    }

    private bool ConditionsHold(scoped in Command command, Row key) => KeyConditions.Hold(_store, in command, key);

    private static HistoryChoice HistoryOf(scoped in Command command, ClusterTime time) =>
        new(!command.Has(CommandFlags.WithoutHistory), time);

    private static ClusterTime DeadlineAfter(ClusterTime time, long ttlMs) =>
        time.Ms > long.MaxValue - ttlMs ? ClusterTime.Never : time + ttlMs;

    /// <summary>The revision that the next write of a key follows.</summary>
    private Revision RevisionBefore(Row key) =>
        key.IsNone ? _store.Forgotten.FirstRevision.Previous() : _store.Keys[key].Revision;

    /// <summary>
    /// Gives the outcome of a set or delete that is about to take effect, while the previous value is still there.
    /// </summary>
    private void Written(scoped in Command command, Row key, CommandAnswer answer)
    {
        if (answer.IsWanted)
        {
            WithPrevious(in command, key, new Outcome(OutcomeStatus.Applied, RevisionBefore(key).Next().Value), answer);
        }
    }

    private void ConditionFailed(scoped in Command command, Row key, CommandAnswer answer)
    {
        if (answer.IsWanted)
        {
            Revision revision = _store.Exists(key) ? _store.Keys[key].Revision : Revision.None;
            WithPrevious(in command, key, new Outcome(OutcomeStatus.ConditionFailed, revision.Value), answer);
        }
    }

    private void WithPrevious(scoped in Command command, Row key, Outcome outcome, CommandAnswer answer)
    {
        if (_store.Exists(key))
        {
            ref KeyEntry entry = ref _store.Keys[key];
            outcome.Number = entry.Revision.Value;
            if (command.Has(CommandFlags.ReturnPrevious))
            {
                outcome.HasValue = true;
                outcome.ValueIsNull = entry.IsNull;
                outcome.Value = _store.Keys.Value(in entry);
            }
        }

        answer.Give(in outcome);
    }

    private static void NotFound(CommandAnswer answer) => answer.Give(new Outcome(OutcomeStatus.NotFound));
}

/// <summary>The conditions under which a command writes a key. Stateless.</summary>
internal static class KeyConditions
{
    /// <summary>True when all of the command's conditions hold; they combine with AND.</summary>
    public static bool Hold(KeyStore store, scoped in Command command, Row key)
    {
        const CommandFlags Conditions =
            CommandFlags.IfAbsent | CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision;
        if (!command.Has(Conditions))
        {
            return true;
        }

        if (!store.Exists(key))
        {
            return !command.Has(CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision);
        }

        ref KeyEntry entry = ref store.Keys[key];
        return !command.Has(CommandFlags.IfAbsent)
            && (!command.Has(CommandFlags.IfRevision) || entry.Revision == new Revision(command.ComparedRevision))
            && (!command.Has(CommandFlags.IfValue)
                || (entry.IsNull == command.Has(CommandFlags.NullCompared)
                    && store.Keys.Value(in entry).SequenceEqual(command.ComparedValue)));
    }
}

/// <summary>
/// Integers as increment reads and writes them: decimal ASCII in the shortest form. Stateless, any thread.
/// </summary>
internal static class DecimalText
{
    /// <summary>Longest form: a minus sign and 19 digits.</summary>
    public const int BytesMax = 20;

    /// <summary>
    /// Reads a signed 64-bit integer that is written exactly as <see cref="Write"/> would: a minus sign or none, no
    /// plus sign, no leading zero, no "-0", no space. False for anything else, and for what is outside the range.
    /// </summary>
    public static bool TryRead(ReadOnlySpan<byte> text, out long value)
    {
        if (text.Length > BytesMax || !Utf8Parser.TryParse(text, out value, out int taken) || taken != text.Length)
        {
            value = 0;
            return false;
        }

        Span<byte> again = stackalloc byte[BytesMax];
        return Write(value, again).SequenceEqual(text);
    }

    /// <summary>Writes a value to the start of <paramref name="target"/> and returns that part.</summary>
    public static ReadOnlySpan<byte> Write(long value, Span<byte> target)
    {
        Utf8Formatter.TryFormat(value, target, out int written);
        return target[..written];
    }
}
