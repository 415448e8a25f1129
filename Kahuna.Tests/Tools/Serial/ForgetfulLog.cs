using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// A log that takes everything and keeps nothing, and is as fast as that: what a loop can do without a disk. Every
/// batch counts as stored when the owner says so. One thread.
/// </summary>
internal sealed class ForgetfulLog : ILogStore, ILogWriter
{
    private readonly byte[] _bytes = new byte[16 << 20];
    private ILogSink? _sink;
    private ulong _submitted;
    private ulong _stored;
    private bool _isOpen;

    /// <inheritdoc/>
    public long HeldBytesMax => long.MaxValue;

    /// <inheritdoc/>
    public string? RefuseWrites => null;

    /// <inheritdoc/>
    public int Pending => (int)(_submitted - _stored);

    /// <summary>Says that all batches are stored; false: there was none.</summary>
    public bool Store()
    {
        if (_stored == _submitted)
        {
            return false;
        }

        _stored = _submitted;
        _sink!.Persisted(_stored);
        return true;
    }

    /// <inheritdoc/>
    public RecoveredGroup Recovered(GroupId group) => new(default, [], default, default, default);

    /// <inheritdoc/>
    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit) =>
        throw new NotSupportedException();

    /// <inheritdoc/>
    public ILogWriter OpenWriter(ILogSink sink)
    {
        _sink = sink;
        return this;
    }

    /// <inheritdoc/>
    public void Release(GroupId group, LogIndex index)
    {
    }

    /// <inheritdoc/>
    public void Abandon(GroupId group)
    {
    }

    /// <inheritdoc/>
    public LogIndex StartOf(GroupId group) => default;

    /// <inheritdoc/>
    public long BytesSince(GroupId group, LogIndex index) => 0;

    /// <inheritdoc/>
    public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes) => _bytes.AsSpan(0, bytes);

    /// <inheritdoc/>
    public void EndAppend() => _isOpen = true;

    /// <inheritdoc/>
    public void Save(GroupId group, in HardState state) => _isOpen = true;

    /// <inheritdoc/>
    public void Restart(GroupId group, LogIndex index, Term term) => _isOpen = true;

    /// <inheritdoc/>
    public ulong Submit()
    {
        if (!_isOpen)
        {
            return 0;
        }

        _isOpen = false;
        return ++_submitted;
    }

    /// <inheritdoc/>
    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) =>
        throw new NotSupportedException();

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => ValueTask.CompletedTask;
}
