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
internal sealed class KeyValueTable(KeyStore store) : CommandHandler
{
    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        switch (command.Kind)
        {
            case CommandKind.ExpireSweep:
                answer.Give(new Outcome(
                    OutcomeStatus.Applied, 0, ExpirySweep.Apply(store, time, new Sweep(in command).StepsMax)));
                break;
            case CommandKind.Evict:
                Eviction.Apply(store, in command);
                break;
            default:
                ApplyToKey(in command, time, store.Keys.HashOf(command.Key, known), answer);
                break;
        }
    }

    /// <inheritdoc/>
    public override bool Read(
        scoped in Command command, ClusterTime time, ClusterTime now, KnownHash known, ByteBuffer outcome)
    {
        if (command.Kind == CommandKind.KeyRange)
        {
            RangeReader.Read(store, new RangeRequest(in command), time, outcome);
        }
        else
        {
            KeyReader.Read(store, in command, time, now, outcome, known);
        }

        return true;
    }

    /// <inheritdoc cref="Eviction.TryChoose"/>
    public bool TryChooseVictims(ByteBuffer names, int namesBytesMax, ref long bytes) =>
        Eviction.TryChoose(store, names, namesBytesMax, ref bytes);

    /// <inheritdoc cref="ExpirySweep.CountDue"/>
    public int CountDue(ClusterTime now, int countMax) => ExpirySweep.CountDue(store, now, countMax);

    private void ApplyToKey(scoped in Command command, ClusterTime time, uint hash, CommandAnswer answer)
    {
        Row key = store.Keys.Find(command.Key, hash);
        if (!key.IsNone)
        {
            store.Expire(key, time);
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
            key = store.Create(command.Key, hash, command.Value, isNull);
        }
        else
        {
            store.Write(key, command.Value, isNull, HistoryOf(in command, time));
        }

        if (command.Has(CommandFlags.Ttl))
        {
            store.SetDeadline(key, DeadlineAfter(time, command.TtlMs));
        }
        else
        {
            store.ClearDeadline(key);
        }
    }

    private void Delete(scoped in Command command, Row key, ClusterTime time, CommandAnswer answer)
    {
        if (!store.Exists(key))
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
            store.Delete(key, HistoryOf(in command, time));
        }
    }

    private void Extend(scoped in Command command, Row key, ClusterTime time, CommandAnswer answer)
    {
        if (!store.Exists(key))
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
            store.ClearDeadline(key);
        }
        else
        {
            store.SetDeadline(key, DeadlineAfter(time, command.TtlMs));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, store.Keys[key].Revision.Value));
    }

    private void Increment(scoped in Command command, Row key, uint hash, ClusterTime time, CommandAnswer answer)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        bool exists = store.Exists(key);
        Revision revision = RevisionBefore(key);
        long before = 0;
        if (exists
            && (store.Keys[key].IsNull || !DecimalText.TryRead(store.Keys.Value(in store.Keys[key]), out before)))
        {
            answer.Give(new Outcome(OutcomeStatus.NotAnInteger, revision.Value));
            return;
        }

        long after = unchecked(before + command.Number);
        if (((before ^ after) & (command.Number ^ after)) < 0)
        {
            answer.Give(new Outcome(OutcomeStatus.Overflow, revision.Value, before));
            return;
        }

        Span<byte> scratch = stackalloc byte[DecimalText.BytesMax];
        ReadOnlySpan<byte> text = DecimalText.Write(after, scratch);
        if (key.IsNone)
        {
            store.Create(command.Key, hash, text, isNull: false);
        }
        else
        {
            store.Write(key, text, isNull: false, HistoryOf(in command, time));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, revision.Next().Value, after));
    }

    private bool ConditionsHold(scoped in Command command, Row key) => KeyConditions.Hold(store, in command, key);

    private static HistoryChoice HistoryOf(scoped in Command command, ClusterTime time) =>
        new(!command.Has(CommandFlags.WithoutHistory), time);

    private static ClusterTime DeadlineAfter(ClusterTime time, long ttlMs) =>
        time.Ms > long.MaxValue - ttlMs ? ClusterTime.Never : time + ttlMs;

    /// <summary>The revision that the next write of a key follows.</summary>
    private Revision RevisionBefore(Row key) =>
        key.IsNone ? store.Forgotten.FirstRevision.Previous() : store.Keys[key].Revision;

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
            Revision revision = store.Exists(key) ? store.Keys[key].Revision : Revision.None;
            WithPrevious(in command, key, new Outcome(OutcomeStatus.ConditionFailed, revision.Value), answer);
        }
    }

    private void WithPrevious(scoped in Command command, Row key, Outcome outcome, CommandAnswer answer)
    {
        if (store.Exists(key))
        {
            ref KeyEntry entry = ref store.Keys[key];
            outcome.Number = entry.Revision.Value;
            if (command.Has(CommandFlags.ReturnPrevious))
            {
                outcome.HasValue = true;
                outcome.ValueIsNull = entry.IsNull;
                outcome.Value = store.Keys.Value(in entry);
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
