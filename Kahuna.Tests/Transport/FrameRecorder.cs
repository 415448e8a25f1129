using System.Collections.Concurrent;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Transport;

/// <summary>Records delivered frames, and lets a test wait for them. Any thread.</summary>
internal sealed class FrameRecorder : IPeerReceiver
{
    private static readonly TimeSpan s_limit = LastNet.Span;

    private readonly object _gate = new();
    private readonly List<byte[]> _frames = [];

    public Action<NodeId, ReadOnlyMemory<byte>>? OnFrame { get; set; }

    public ConcurrentQueue<(NodeId Peer, bool Up)> Changes { get; } = new();

    public void Receive(NodeId from, ReadOnlySpan<byte> payload)
    {
        byte[] copy = payload.ToArray();
        OnFrame?.Invoke(from, copy);
        lock (_gate)
        {
            _frames.Add(copy);
            Monitor.PulseAll(_gate);
        }
    }

    public void LinkChanged(NodeId peer, bool up)
    {
        Changes.Enqueue((peer, up));
        lock (_gate)
        {
            Monitor.PulseAll(_gate);
        }
    }

    public IReadOnlyList<byte[]> WaitFrames(int count) =>
        Wait(() => _frames.Count >= count, () => $"{_frames.Count} of {count} frames") ? [.. _frames] : [];

    public void WaitChanges(params bool[] ups) =>
        Wait(() => Changes.Select(change => change.Up).SequenceEqual(ups), () =>
            $"changes {string.Join(',', Changes)}, expected {string.Join(',', ups)}");

    private bool Wait(Func<bool> condition, Func<string> found)
    {
        long deadline = Environment.TickCount64 + (long)s_limit.TotalMilliseconds;
        lock (_gate)
        {
            while (!condition())
            {
                Assert.True(Environment.TickCount64 < deadline, found());
                Monitor.Wait(_gate, 100);
            }
        }

        return true;
    }
}
