using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions;

/// <summary>What one partition has told the node's trace, so that it tells only what is new. Owned by one <see cref="Partition"/>; not thread-safe.</summary>
internal sealed class PartitionTrace(IPartitionTrace port, GroupId group)
{
    private readonly List<ulong> _digests = [];
    private LogIndex _applied;
    private LogIndex _commit;
    private Term _led;

    /// <summary>After inputs to the core, and before anything of them leaves.</summary>
    public void LookAtRole(RaftCore core)
    {
        if (core.Role == RaftRole.Leader && core.Term != _led)
        {
            _led = core.Term;
            port.BecameLeader(group, core.Term, core.LastIndex, core.CommitIndex);
        }
    }

    /// <summary>After the entries of the turn were handed to the log: what they commit is told after them.</summary>
    public void LookAtCommit(RaftCore core)
    {
        if (core.CommitIndex > _commit)
        {
            // What is committed and not yet applied is in memory.
            _commit = core.CommitIndex;
            core.Payload(_commit, out Term term, out _);
            port.Committed(group, _commit, term);
        }
    }

    public void Acknowledged(LogIndex index, Term term, int writes) => port.Acknowledged(group, index, term, writes);

    public void Applied(LogIndex index, ulong digest)
    {
        _applied = index;
        _digests.Add(digest);
    }

    /// <summary>Tells what was applied in this round as a whole.</summary>
    public void EndApply()
    {
        if (_digests.Count > 0)
        {
            LogIndex first = new(_applied.Value + 1 - (ulong)_digests.Count);
            port.Applied(group, first, CollectionsMarshal.AsSpan(_digests));
            _digests.Clear();
        }
    }

    public void StateLoaded(LogIndex index, Term term, ulong digest)
    {
        _applied = index;
        _commit = index;
        port.StateLoaded(group, index, term, digest);
    }
}
