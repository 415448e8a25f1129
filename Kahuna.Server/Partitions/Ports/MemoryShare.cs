using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// One group's share of the node's memory: counts what its state takes up, of an ephemeral group its log too, and
/// refuses writes when there is no room. Owned by one group; not thread-safe.
/// </summary>
internal sealed class MemoryShare(GroupId group, LoopPorts ports, AppliedState applied)
{
    private long _bytes;
    private long _free;
    private long _evictable;

    /// <summary>Keys are evicted when there is no room.</summary>
    public bool Evicts => group.IsEphemeral && ports.Memory.Evicts;

    /// <summary>Room is short: what can be forgotten early should be.</summary>
    public bool IsPressed => group.IsEphemeral && ports.Memory.IsPressed;

    /// <summary>Bytes of keys that this group should evict now.</summary>
    public long ShareToEvict() => ports.Memory.ShareToEvict(applied.State.EvictableBytes);

    /// <summary>Why a write that may take up more memory is refused, or null.</summary>
    /// <param name="pendingBytes">Bytes of writes that are accepted and not applied yet.</param>
    public string? RefuseGrowth(long pendingBytes)
    {
        if (applied.State.IsFull)
        {
            return "The partition has reached the most that one may hold; nothing was changed. "
                + "Delete keys, or let them expire.";
        }

        return group.IsEphemeral
            ? ports.Memory.RefuseWrites(pendingBytes) : ports.PersistentMemory.RefuseWrites(pendingBytes);
    }

    /// <summary>Counts what the group takes up now. The log of an ephemeral group is in memory only.</summary>
    public void Weigh(RaftCore core)
    {
        StateMachine state = applied.State;
        Count(state.BytesInUse + (group.IsEphemeral ? core.LogMemoryBytes : 0), state.FreeBytes, state.EvictableBytes);
    }

    /// <summary>The group has stopped: its memory is not counted any longer.</summary>
    public void GiveBack() => Count(0, 0, 0);

    private void Count(long bytes, long free, long evictable)
    {
        InvariantException.Require(bytes >= 0 && free >= 0 && free <= bytes && evictable >= 0,
            "what lies free is part of what is taken up");
        if (group.IsEphemeral)
        {
            ports.Memory.Changed(bytes - _bytes, free - _free, evictable - _evictable);
        }
        else
        {
            ports.PersistentMemory.Changed(bytes - _bytes, free - _free);
        }

        (_bytes, _free, _evictable) = (bytes, free, evictable);
    }
}
