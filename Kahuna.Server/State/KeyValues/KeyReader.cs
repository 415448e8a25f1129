using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>Answers reads of keys, at their latest revision or at an earlier one. Changes nothing. Stateless.</summary>
internal static class KeyReader
{
    private const long NoTimeToLive = -1;

    /// <summary>
    /// Answers one read (Get, Exists) and appends its encoded outcome. What has expired by <paramref name="time"/>,
    /// the time of the latest entry, is hidden, and nothing else: a leader's clock may be ahead of what the next
    /// leader's goes on from, and a key that was gone must not come back. <paramref name="now"/>, by that clock, is
    /// what the remaining time is counted from.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static void Read(
        KeyStore store,
        scoped in Command command,
        ClusterTime time,
        ClusterTime now,
        ByteBuffer outcome,
        KnownHash known)
    {
        InvariantException.Require(
            command.Kind is CommandKind.Get or CommandKind.Exists, "only get and exists are read");
        Row key = store.Keys.Find(command.Key, store.Keys.HashOf(command.Key, known));
        if (key.IsNone)
        {
            new Outcome(OutcomeStatus.NotFound).Write(outcome);
            return;
        }

        store.Uses?.Touch(key);
        ref KeyEntry entry = ref store.Keys[key];
        bool expired = store.Expiry.HasPassed(in entry, time);
        Revision current = expired ? entry.Revision.Next() : entry.Revision;
        Revision asked = new(command.AtRevision);
        if (command.Has(CommandFlags.AtRevision) && asked < current)
        {
            ReadReplaced(store, in command, in entry, current, outcome);
            return;
        }

        if (expired || entry.IsDeleted || (command.Has(CommandFlags.AtRevision) && asked > current))
        {
            new Outcome(OutcomeStatus.NotFound, current.Value).Write(outcome);
            return;
        }

        long remaining = entry.ExpirySlot == 0 || command.Has(CommandFlags.AtRevision)
            ? NoTimeToLive
            : Math.Max(0, store.Expiry.DeadlineOf(in entry) - ClusterTime.Max(now, time));
        Found(in command, current, remaining, entry.IsNull, store.Keys.Value(in entry), outcome);
    }

    private static void Found(
        scoped in Command command,
        Revision revision,
        long remaining,
        bool isNull,
        ReadOnlySpan<byte> value,
        ByteBuffer outcome)
    {
        Outcome found = new(OutcomeStatus.Found, revision.Value, remaining);
        if (command.Kind == CommandKind.Get)
        {
            found.HasValue = true;
            found.ValueIsNull = isNull;
            found.Value = value;
        }

        found.Write(outcome);
    }

    /// <summary>
    /// A revision below the current one: in history, still in the row of a key that has expired unswept, or gone.
    /// </summary>
    private static void ReadReplaced(
        KeyStore store, scoped in Command command, in KeyEntry entry, Revision current, ByteBuffer outcome)
    {
        Revision asked = new(command.AtRevision);
        if (asked == entry.Revision && store.History.Keeps(in entry))
        {
            Found(in command, entry.Revision, NoTimeToLive, entry.IsNull, store.Keys.Value(in entry), outcome);
            return;
        }

        int index = store.History.Find(in entry, asked);
        if (index == 0)
        {
            new Outcome(OutcomeStatus.RevisionCompacted, current.Value).Write(outcome);
            return;
        }

        ref readonly HistoryRecord record = ref store.History[index];
        if ((record.Flags & KeyEntryFlags.Deleted) != 0)
        {
            new Outcome(OutcomeStatus.NotFound, record.Revision.Value).Write(outcome);
            return;
        }

        Found(
            in command,
            record.Revision,
            NoTimeToLive,
            (record.Flags & KeyEntryFlags.Null) != 0,
            store.History.Value(in record),
            outcome);
    }
}
