using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Transport;

/// <summary>Keeps a few frames going round and measures what the reading thread allocates meanwhile. Called by that thread.</summary>
internal sealed class EchoReceiver(int warm, int measured) : IPeerReceiver
{
    private readonly TaskCompletionSource _done = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private int _frames;
    private long _before;

    public Func<ByteBuffer, bool>? Send { get; set; }

    public Task Done => _done.Task;

    public long AllocatedBytes { get; private set; }

    public void Receive(NodeId from, ReadOnlySpan<byte> payload)
    {
        _frames++;
        if (_frames == warm)
        {
            _before = GC.GetAllocatedBytesForCurrentThread();
        }
        else if (_frames == warm + measured)
        {
            AllocatedBytes = GC.GetAllocatedBytesForCurrentThread() - _before;
            _done.SetResult();
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

    private void SendOne()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        frame.Length = 4;
        frame.Take(200).Clear();
        Send!(frame);
    }
}
