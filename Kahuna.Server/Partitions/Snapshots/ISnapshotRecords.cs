using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// The records of a state that is sent, wherever they come from. Owned by the <see cref="SnapshotSource"/>.
/// </summary>
internal interface ISnapshotRecords : IDisposable
{
    CheckpointMark Mark { get; }

    /// <summary>
    /// Appends whole records, each preceded by its length (u32), about this many bytes. NotYet: they are being read,
    /// and their arrival wakes the checkpoint service.
    /// </summary>
    SnapshotRead Read(ByteBuffer target, int bytesMax);
}

/// <summary>What a reading of records came to.</summary>
internal enum SnapshotRead : byte
{
    /// <summary>Some were appended; there may be more.</summary>
    Some,

    NotYet,

    /// <summary>Nothing was appended: there are no more.</summary>
    End,
}
