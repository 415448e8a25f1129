using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>A message that leaves when a batch is on stable storage. Owned by a <see cref="PeerMessages"/>.</summary>
internal struct HeldMessage
{
    /// <summary>The batch; 0 until it is submitted.</summary>
    public ulong Batch;

    /// <summary>The group whose message it is.</summary>
    public Group Group;

    /// <summary>The message.</summary>
    public RaftMessage Message;

    /// <summary>Epoch and incarnation under which it was made.</summary>
    public MessageStamp Stamp;
}
