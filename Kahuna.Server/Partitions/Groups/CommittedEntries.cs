using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Applies what a turn has found to be committed, and has the callers of this node's own writes answered. Owned by one
/// group; not thread-safe.
/// </summary>
internal sealed class CommittedEntries
{
    private readonly AppliedState _applied;
    private readonly PendingRequests _requests;
    private readonly StateComparison _comparison;
    private readonly GroupHooks _hooks;
    private readonly GroupTrace _trace;
    private readonly EntryApplier _applier;
    private readonly LogIndex _recovered;

    public CommittedEntries(GroupStart start, PendingRequests requests, StateComparison comparison, GroupHooks hooks,
        GroupTrace trace)
    {
        _applied = start.Applied;
        _requests = requests;
        _comparison = comparison;
        _hooks = hooks;
        _trace = trace;
        _applier = new EntryApplier(start.Applied, start.Audit);
        _recovered = start.Core.LastIndex;
    }

    /// <summary>Applies entries [first, last].</summary>
    public void Apply(Group group, LogIndex first, LogIndex last)
    {
        RaftCore core = group.Core;
        _trace.LookAtCommit(core);
        for (LogIndex index = first; index <= last; index = index.Next())
        {
            InvariantException.Require(index == _applied.Index.Next(), "entries are applied once and in order");
            ReadOnlySpan<byte> payload = core.Payload(index, out Term term, out EntryKind kind);
            Apply(group, core, new CommittedEntry(index, kind, payload), term);
        }

        _trace.EndApply();
    }

    private void Apply(Group group, RaftCore core, in CommittedEntry entry, Term term)
    {
        int replies = _requests.Committed(core, entry.Index, term);
        if (replies > 0)
        {
            _trace.Acknowledged(entry.Index, term, replies);
        }

        // What the log had at the start was replayed only as far as it was known to be committed; the rest comes here.
        CommittedCommands commands = new(_requests.Commands, core, replies > 0);
        bool isRecovered = entry.Index <= _recovered;
        int count = _applier.Apply(entry, in commands, replies, isLeader: core.Role == RaftRole.Leader, isRecovered);
        if (count > 0)
        {
            _hooks.Applied(entry.Payload[CommandEntry.HeaderBytes..]);
        }

        _comparison.Applied(group, core, entry);
        _applied.Advance(entry.Index, term);
        _trace.Applied(entry.Index, _applied.State.Digest);
        if (!_requests.IsServing && core.Role == RaftRole.Leader && term == core.Term)
        {
            _requests.BeginServing();
            _comparison.BeginServing();
        }
    }
}
