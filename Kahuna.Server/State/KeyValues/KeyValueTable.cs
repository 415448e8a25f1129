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
    public override void Apply(scoped in Command command, long timeMs, KnownHash known, CommandAnswer answer)
    {
        switch (command.Kind)
        {
            case CommandKind.ExpireSweep:
                answer.Give(new Outcome(
                    OutcomeStatus.Applied, 0, ExpirySweep.Apply(store, timeMs, new Sweep(in command).StepsMax)));
                break;
            case CommandKind.Evict:
                Eviction.Apply(store, in command);
                break;
            default:
                ApplyToKey(in command, timeMs, store.Keys.HashOf(command.Key, known), answer);
                break;
        }
    }

    /// <inheritdoc/>
    public override bool Read(scoped in Command command, long timeMs, long nowMs, KnownHash known, ByteBuffer outcome)
    {
        KeyReader.Read(store, in command, timeMs, nowMs, outcome, known);
        return true;
    }

    private void ApplyToKey(scoped in Command command, long timeMs, uint hash, CommandAnswer answer)
    {
        int key = store.Keys.Find(command.Key, hash);
        if (key != 0)
        {
            store.Expire(key, timeMs);
        }

        switch (command.Kind)
        {
            case CommandKind.Set:
                Set(in command, key, hash, timeMs, answer);
                break;
            case CommandKind.Delete:
                Delete(in command, key, timeMs, answer);
                break;
            case CommandKind.Extend:
                Extend(in command, key, timeMs, answer);
                break;
            case CommandKind.Increment:
                Increment(in command, key, hash, timeMs, answer);
                break;
            default:
                throw NoSuchCommand(command.Kind);
        }
    }

    private void Set(scoped in Command command, int key, uint hash, long timeMs, CommandAnswer answer)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        bool isNull = command.Has(CommandFlags.NullValue);
        Written(in command, key, answer);
        if (key == 0)
        {
            key = store.Create(command.Key, hash, command.Value, isNull);
        }
        else
        {
            store.Write(key, command.Value, isNull, HistoryOf(in command, timeMs));
        }

        if (command.Has(CommandFlags.Ttl))
        {
            store.SetDeadline(key, DeadlineAfter(timeMs, command.TtlMs));
        }
        else
        {
            store.ClearDeadline(key);
        }
    }

    private void Delete(scoped in Command command, int key, long timeMs, CommandAnswer answer)
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
            store.Delete(key, HistoryOf(in command, timeMs));
        }
    }

    private void Extend(scoped in Command command, int key, long timeMs, CommandAnswer answer)
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
            store.SetDeadline(key, DeadlineAfter(timeMs, command.TtlMs));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, store.Keys[key].Revision));
    }

    private void Increment(scoped in Command command, int key, uint hash, long timeMs, CommandAnswer answer)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, answer);
            return;
        }

        bool exists = store.Exists(key);
        long revision = RevisionBefore(key);
        long before = 0;
        if (exists
            && (store.Keys[key].IsNull || !DecimalText.TryRead(store.Keys.Value(in store.Keys[key]), out before)))
        {
            answer.Give(new Outcome(OutcomeStatus.NotAnInteger, revision));
            return;
        }

        long after = unchecked(before + command.Number);
        if (((before ^ after) & (command.Number ^ after)) < 0)
        {
            answer.Give(new Outcome(OutcomeStatus.Overflow, revision, before));
            return;
        }

        Span<byte> scratch = stackalloc byte[DecimalText.BytesMax];
        ReadOnlySpan<byte> text = DecimalText.Write(after, scratch);
        if (key == 0)
        {
            store.Create(command.Key, hash, text, isNull: false);
        }
        else
        {
            store.Write(key, text, isNull: false, HistoryOf(in command, timeMs));
        }

        answer.Give(new Outcome(OutcomeStatus.Applied, revision + 1, after));
    }

    private bool ConditionsHold(scoped in Command command, int key) => KeyConditions.Hold(store, in command, key);

    private static HistoryChoice HistoryOf(scoped in Command command, long timeMs) =>
        new(!command.Has(CommandFlags.WithoutHistory), timeMs);

    private static long DeadlineAfter(long timeMs, long ttlMs) =>
        timeMs > long.MaxValue - ttlMs ? long.MaxValue : timeMs + ttlMs;

    /// <summary>The revision that the next write of a key follows.</summary>
    private long RevisionBefore(int key) =>
        key == 0 ? store.Forgotten.FirstRevision - 1 : store.Keys[key].Revision;

    /// <summary>
    /// Gives the outcome of a set or delete that is about to take effect, while the previous value is still there.
    /// </summary>
    private void Written(scoped in Command command, int key, CommandAnswer answer)
    {
        if (answer.IsWanted)
        {
            WithPrevious(in command, key, new Outcome(OutcomeStatus.Applied, RevisionBefore(key) + 1), answer);
        }
    }

    private void ConditionFailed(scoped in Command command, int key, CommandAnswer answer)
    {
        if (answer.IsWanted)
        {
            long revision = store.Exists(key) ? store.Keys[key].Revision : 0;
            WithPrevious(in command, key, new Outcome(OutcomeStatus.ConditionFailed, revision), answer);
        }
    }

    private void WithPrevious(scoped in Command command, int key, Outcome outcome, CommandAnswer answer)
    {
        if (store.Exists(key))
        {
            ref KeyEntry entry = ref store.Keys[key];
            outcome.Number = entry.Revision;
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
