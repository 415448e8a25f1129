using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: where a node keeps the states of its persistent partitions between flushes, so that the log below them can be
/// cut. A write takes effect as a whole, when it is on stable storage, or not at all. Errors name file or directory.
/// All calls, those of writers and readers too, from one thread (the node's checkpoint thread); any number of writers
/// and readers may be open.
/// </summary>
internal interface IStateStore : IDisposable
{
    /// <summary>
    /// True when each write must bring the whole state of the group, false when it may bring the keys that changed
    /// since the last one.
    /// </summary>
    bool TakesWholeStates { get; }

    /// <summary>
    /// True when the next write of a group should bring its whole state, because that costs less room or time than to
    /// keep what was written before.
    /// </summary>
    bool WantsWhole(GroupId group);

    /// <summary>What is stored of a group; null when nothing is.</summary>
    CheckpointMark? Find(GroupId group);

    /// <summary>
    /// Hands out every record of a group, checked, in any order; none when nothing is stored. A record is valid during
    /// the call.
    /// </summary>
    void Load(GroupId group, RowImageSink sink);

    /// <summary>Begins a write. Of several writes of one group the one that is committed last counts.</summary>
    /// <param name="group">Whose state it is.</param>
    /// <param name="mark">What is stored with the records, in the same step.</param>
    /// <param name="whole">
    /// The records are the group's whole state and replace what is stored (a snapshot from another node, or a store
    /// that takes whole states); else they are the keys that changed.
    /// </param>
    IStateWriter BeginWrite(GroupId group, in CheckpointMark mark, bool whole);

    /// <summary>
    /// No write is due for a while: room that is kept for the next one goes. For a store that keeps none there is
    /// nothing to do.
    /// </summary>
    void LetGo()
    {
    }

    /// <summary>
    /// A consistent reading of what is stored now, unchanged by later writes; null when nothing is stored.
    /// </summary>
    IStateReader? OpenReader(GroupId group);
}

/// <summary>
/// One write to a state store. Disposed without a commit it leaves nothing behind. After an error it is of no use; when
/// there was no room (<see cref="StateWriteException.NoSpace"/>), the store takes a new write as soon as there is.
/// </summary>
internal interface IStateWriter : IDisposable
{
    /// <summary>
    /// Adds records as a view hands them out: each preceded by its length (u32), each key once in the whole write. All
    /// orders are taken; rows that ascend cost least.
    /// </summary>
    /// <param name="records">A row of records.</param>
    /// <param name="scattered">They are known to be out of order (<see cref="State.ViewSlice.PreImages"/>).</param>
    void Add(ReadOnlySpan<byte> records, bool scattered = false);

    /// <summary>
    /// Returns when everything is on stable storage and is what the store has. After an error it may have happened or
    /// not, but never in part.
    /// </summary>
    void Commit();
}

/// <summary>One reading of a stored state. Holds the room of what it reads until it is disposed.</summary>
internal interface IStateReader : IDisposable
{
    /// <summary>What was stored with the records.</summary>
    CheckpointMark Mark { get; }

    /// <summary>
    /// Appends whole records, each preceded by its length (u32), until about <paramref name="bytesMax"/> bytes were
    /// appended, at least one record. False, with nothing appended, when there is no more. Checked bytes only: damage
    /// is a <see cref="StorageException"/> that names the file, and a <see cref="GroupDamagedException"/> where nothing
    /// but this group's state is in it.
    /// </summary>
    bool TryRead(ByteBuffer target, int bytesMax);
}

/// <summary>Takes one record of a state.</summary>
internal delegate void RowImageSink(RowImage record);
