using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions;

/// <summary>A message that leaves when a batch is durable. Owned by a <see cref="TurnOutput"/>.</summary>
internal struct HeldMessage
{
    public ulong Batch;
    public Partition Partition;
    public RaftMessage Message;
    public MessageStamp Stamp;
}
