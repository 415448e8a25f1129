using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Transport;

/// <summary>
/// Keeps a few frames going round and measures what the reading thread allocates meanwhile. Called by that thread. A
/// collection that another test causes retires the thread's allocation buffer, whose rest then counts as allocated: so
/// it is measured in several windows, and the least counts.
/// </summary>
internal sealed class EchoReceiver(int warm, int windowFrames, int windows) : IPeerReceiver
{
    private readonly TaskCompletionSource _done = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private int _frames;
    private int _windows;
    private long _before;

    public Func<ByteBuffer, bool>? Send { get; set; }

    public Task Done => _done.Task;

    /// <summary>Bytes allocated in the window in which the fewest were.</summary>
    public long AllocatedBytes { get; private set; } = long.MaxValue;

    public void Receive(NodeId from, ReadOnlySpan<byte> payload)
    {
        _frames++;
        if (_frames >= warm && (_frames - warm) % windowFrames == 0)
        {
            Look();
        }

        SendOne();
    }

    public void LinkChanged(NodeId peer, bool up)
    {
        for (int i = 0; up && i < 4; i++)
        {
            SendOne();
        }
    }

    private void Look()
    {
        long now = GC.GetAllocatedBytesForCurrentThread();
        AllocatedBytes = _frames > warm ? Math.Min(AllocatedBytes, now - _before) : AllocatedBytes;
        if (_frames > warm && ++_windows == windows)
        {
            _done.SetResult();
        }

        _before = GC.GetAllocatedBytesForCurrentThread();
    }

    private void SendOne()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        frame.Length = 4;
        frame.Take(200).Clear();
        Send!(frame);
    }
}
