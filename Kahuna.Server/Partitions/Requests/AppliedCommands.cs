using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Applies the commands of committed entries, and answers those of this leader's own callers. Owned by a group's
/// <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class AppliedCommands(RequestParts parts, ProposalQueue proposals, Housekeeping housekeeping)
{
    private readonly AppliedState _applied = parts.Applied;
    private readonly MemoryShare _memory = parts.Memory;
    private readonly ReplyFrames _replies = parts.Replies;

    /// <summary>Applies one command of an entry, and answers its caller, if one waits.</summary>
    public void Apply(RaftCore core, scoped in Command command, KnownHash known, bool isAwaited)
    {
        housekeeping.Applied(command.Kind);
        ProposalQueue.PendingReply reply = isAwaited ? proposals.TakeReply() : default;
        if (reply.Sink is null)
        {
            _applied.State.Apply(command, null, known);
            if (command.Kind == CommandKind.Evict)
            {
                // There is room again, before the next tick says so.
                _memory.Weigh(core);
            }

            return;
        }

        ByteBuffer frame = _replies.BeginReply(reply.Sink, reply.Number, out int at);
        try
        {
            _applied.State.Apply(command, frame, known);
        }
        catch (InvariantException)
        {
            _replies.GiveUpReply(reply.Sink, reply.Number, frame, at);
            throw;
        }

        if (!_replies.TryEndWrite(reply.Sink, frame, at))
        {
            // The client does not take its answers: it does not learn how this write ended. Under its number it may
            // ask again.
            proposals.Answer(reply, OutcomeStatus.Unknown);
        }
    }
}
