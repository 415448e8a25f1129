using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// The one way from an entry to the state: leaders, followers and a restart all go through it. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class EntryApplier(AppliedState applied, StateAudit audit)
{
    /// <summary>Applies an entry. Returns how many commands it had.</summary>
    /// <param name="entry">The entry.</param>
    /// <param name="commands">Takes its commands.</param>
    /// <param name="replies">How many callers wait for it: none, or one for each command.</param>
    /// <param name="isLeader">This node leads: after a mark it takes the answers of the members.</param>
    /// <param name="isRecovered">The log had the entry when the node started.</param>
    public int Apply<TCommands>(in CommittedEntry entry, scoped ref readonly TCommands commands, int replies,
        bool isLeader, bool isRecovered)
        where TCommands : struct, ICommandSink
    {
        switch (entry.Kind)
        {
            case EntryKind.Check:
                ApplyCheck(entry, isLeader, isRecovered);
                return 0;
            case EntryKind.Commands:
                return ApplyCommands(in entry, in commands, replies);
            default:
                return 0;
        }
    }

    private int ApplyCommands<TCommands>(in CommittedEntry entry, scoped ref readonly TCommands commands,
        int replies)
        where TCommands : struct, ICommandSink
    {
        bool decodes = CommandEntry.TryReadHeader(entry.Payload, out long timeMs, out int count,
            out ReadOnlySpan<byte> items);
        InvariantException.Require(decodes, "a committed entry decodes");
        InvariantException.Require(replies == 0 || replies == count, "every command of an awaited entry has one reply");
        StateMachine state = applied.State;
        state.BeginEntry(entry.Index, timeMs);
        for (int i = 0; i < count; i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfEntry(state.Ahead, items, count - i);
            }

            decodes = CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes);
            decodes &= Command.TryRead(bytes, out Command command);
            InvariantException.Require(decodes, "a committed command decodes");
            commands.Apply(command, state.Ahead.HashOf(i % Prefetcher.CommandsMax));
        }

        InvariantException.Require(items.IsEmpty, "a committed entry has nothing behind its last command");
        return count;
    }

    private void ApplyCheck(in CommittedEntry entry, bool isLeader, bool isRecovered)
    {
        bool decodes = CheckEntry.TryRead(entry.Payload, out CheckEntry check);
        InvariantException.Require(decodes, "a committed check decodes");
        applied.State.BeginEntry(entry.Index, check.TimeMs);
        if (check.Kind == CheckKind.Mark)
        {
            audit.Mark(entry.Index, applied.State.Digest, isLeader);
        }
        else
        {
            audit.Judge(check, entry.Index, isRecovered);
        }
    }
}
