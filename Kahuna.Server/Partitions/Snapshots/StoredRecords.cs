using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>Records of a state that is stored. Owned by the <see cref="SnapshotSource"/>.</summary>
internal sealed class StoredRecords(IStateReader reader) : ISnapshotRecords
{
    public CheckpointMark Mark => reader.Mark;

    public SnapshotRead Read(ByteBuffer target, int bytesMax) =>
        reader.TryRead(target, bytesMax) ? SnapshotRead.Some : SnapshotRead.End;

    public void Dispose() => reader.Dispose();
}
