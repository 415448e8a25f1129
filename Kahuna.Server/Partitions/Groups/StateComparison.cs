using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// A group's part in the comparison of its members' states: proposes marks and verdicts, and tells the own digest
/// (docs/adr/0018-replicas-compare-digests.md). A mark also stamps the cluster's time. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class StateComparison(NodeId self, StateAudit audit, PendingRequests requests, PeerMessages peers)
{
    /// <summary>This node leads and serves.</summary>
    public void BeginServing() => audit.BeginServing(requests.ClusterMs);

    /// <summary>The state was replaced, or is void.</summary>
    public void Forget() => audit.Forget();

    /// <summary>A tick of a serving leader: proposes a mark when one is due.</summary>
    public void Tick(RaftCore core, AppliedState applied)
    {
        long clusterMs = requests.ClusterMs;
        if (audit.IsDue(clusterMs, applied.Index, applied.HasDeadlines) && TryMark(core))
        {
            audit.Asked(clusterMs);
        }
    }

    /// <summary>Proposes a mark, which stamps the cluster's time. False when nothing may be proposed now.</summary>
    public bool TryMark(RaftCore core) =>
        TryPropose(core, new CheckEntry(requests.ClusterMs, CheckKind.Mark, default, 0));

    /// <summary>A member, or this node, has told the digest of its state at a mark.</summary>
    public void Compare(RaftCore core, NodeId member, LogIndex index, ulong digest)
    {
        if (core.Role == RaftRole.Leader && requests.IsServing
            && audit.Answered(member, index, digest, requests.ClusterMs) is { } verdict)
        {
            TryPropose(core, verdict);
        }
    }

    /// <summary>An entry is applied. At a mark the leader compares, and the others tell it their digest.</summary>
    public void Applied(Group group, RaftCore core, in CommittedEntry entry)
    {
        if (entry.Kind != EntryKind.Check || audit.Marked != entry.Index)
        {
            return;
        }

        if (core.Role == RaftRole.Leader)
        {
            Compare(core, self, audit.Marked, audit.Digest);
        }
        else if (!core.Leader.IsNone)
        {
            RaftMessage told = new()
            {
                Kind = RaftMessageKind.Digest,
                From = self,
                To = core.Leader,
                Index = audit.Marked,
                Round = audit.Digest
            };
            peers.Send(group, told, []);
        }
    }

    private static bool TryPropose(RaftCore core, in CheckEntry check)
    {
        Span<byte> payload = stackalloc byte[CheckEntry.Bytes];
        check.Write(payload);
        return core.TryPropose(EntryKind.Check, payload, out _);
    }
}
