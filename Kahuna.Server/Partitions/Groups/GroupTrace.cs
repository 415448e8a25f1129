using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What one group has told the node's trace, so that it tells only what is new. Owned by one <see cref="Group"/>; not
/// thread-safe.
/// </summary>
/// <param name="port">The trace; null when nobody checks the group.</param>
/// <param name="group">The group.</param>
internal sealed class GroupTrace(IPartitionTrace? port, GroupId group)
{
    private readonly List<ulong> _digests = [];
    private LogIndex _applied;
    private LogIndex _commit;
    private Term _led;

    /// <summary>After inputs to the core, and before anything of them leaves.</summary>
    public void LookAtRole(RaftCore core)
    {
        if (port is not null && core.Role == RaftRole.Leader && core.Term != _led)
        {
            _led = core.Term;
            port.BecameLeader(group, core.Term, core.LastIndex, core.CommitIndex);
        }
    }

    /// <summary>After the entries of the turn were handed to the log: what they commit is told after them.</summary>
    public void LookAtCommit(RaftCore core)
    {
        if (port is not null && core.CommitIndex > _commit)
        {
            // What is committed and not yet applied is in memory.
            _commit = core.CommitIndex;
            core.Payload(_commit, out Term term, out _);
            port.Committed(group, _commit, term);
        }
    }

    /// <summary>The callers of an entry's writes are about to be answered.</summary>
    public void Acknowledged(LogIndex index, Term term, int writes) => port?.Acknowledged(group, index, term, writes);

    /// <summary>An entry is applied.</summary>
    public void Applied(LogIndex index, ulong digest)
    {
        if (port is not null)
        {
            _applied = index;
            _digests.Add(digest);
        }
    }

    /// <summary>Tells what was applied in this round as a whole.</summary>
    public void EndApply()
    {
        if (_digests.Count > 0)
        {
            LogIndex first = new(_applied.Value + 1 - (ulong)_digests.Count);
            port!.Applied(group, first, CollectionsMarshal.AsSpan(_digests));
            _digests.Clear();
        }
    }

    /// <summary>The state in memory is the one after this entry.</summary>
    public void StateLoaded(LogIndex index, Term term, ulong digest)
    {
        _applied = index;
        _commit = index;
        port?.StateLoaded(group, index, term, digest);
    }
}
