namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// What the checkpoint service has done since the start of the node. Its thread writes; any thread reads.
/// </summary>
internal sealed class CheckpointCounts
{
    private long _stored;
    private long _storedBytes;
    private long _notStored;
    private long _sent;
    private long _sentBytes;
    private long _received;

    /// <summary>Checkpoints that were stored.</summary>
    public long Stored => Volatile.Read(ref _stored);

    /// <summary>Bytes that were written for checkpoints.</summary>
    public long StoredBytes => Volatile.Read(ref _storedBytes);

    /// <summary>Checkpoints that the disk had no room for.</summary>
    public long NotStored => Volatile.Read(ref _notStored);

    /// <summary>Snapshots that other nodes have put in place.</summary>
    public long Sent => Volatile.Read(ref _sent);

    /// <summary>Bytes of snapshots that were sent, those sent again included.</summary>
    public long SentBytes => Volatile.Read(ref _sentBytes);

    /// <summary>Snapshots of other nodes that were put in place here.</summary>
    public long Received => Volatile.Read(ref _received);

    /// <summary>A checkpoint is stored.</summary>
    public void AddStored() => Volatile.Write(ref _stored, _stored + 1);

    /// <summary>Bytes were written for a checkpoint.</summary>
    public void AddStoredBytes(long bytes) => Volatile.Write(ref _storedBytes, _storedBytes + bytes);

    /// <summary>The disk had no room.</summary>
    public void AddNotStored() => Volatile.Write(ref _notStored, _notStored + 1);

    /// <summary>A snapshot was put in place by another node.</summary>
    public void AddSent() => Volatile.Write(ref _sent, _sent + 1);

    /// <summary>Bytes of a snapshot were sent.</summary>
    public void AddSentBytes(long bytes) => Volatile.Write(ref _sentBytes, _sentBytes + bytes);

    /// <summary>A snapshot was put in place.</summary>
    public void AddReceived() => Volatile.Write(ref _received, _received + 1);
}
