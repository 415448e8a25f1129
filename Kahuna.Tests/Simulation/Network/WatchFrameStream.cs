using System.Buffers;
using Kahuna.Client.Connection;
using Kahuna.Server.Api.Calls;
using Kahuna.Wire;
using Kahuna.Wire.Frames;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// The bytes of a watch stream as the shipped client reads and writes them, over a link of the run. Owned by one run.
/// </summary>
internal sealed class WatchFrameStream : IFrameStream
{
    private readonly SimCluster _cluster;
    private readonly WatchLink _link;
    private byte[] _frame = [];
    private int _read;
    private TaskCompletionSource<int>? _reader;
    private Memory<byte> _target;

    public WatchFrameStream(SimCluster cluster, WatchLink link)
    {
        _cluster = cluster;
        _link = link;
        link.Arrived = OnArrived;
    }

    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        _cluster.Scheduler.CheckThread("wrote to a node");
        if (_link.HasEnded)
        {
            throw new IOException("the stream has ended");
        }

        ReadOnlySequence<byte> rest = new(messages.ToArray());
        while (RawStream.TryReadMessage(ref rest, Limits.FrameBytesMax, out ReadOnlySequence<byte> message))
        {
            Frame.TryGetPayload(message.ToArray(), out ReadOnlySpan<byte> payload);
            Frame.TryReadHeader(payload, out FrameKind kind, out _, out _);
            byte[] items = payload[Frame.HeaderBytes..].ToArray();
            if (kind == FrameKind.Hello)
            {
                _link.Greet();
            }
            else
            {
                _link.SendToNode(items);
            }
        }

        return ValueTask.CompletedTask;
    }

    public ValueTask<int> ReadAsync(Memory<byte> buffer)
    {
        _cluster.Scheduler.CheckThread("read from a node");
        if (CopyTo(buffer) is > 0 and int count)
        {
            return new ValueTask<int>(count);
        }

        if (_link.HasEnded)
        {
            return new ValueTask<int>(0);
        }

        _target = buffer;
        _reader = new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);
        return new ValueTask<int>(_reader.Task);
    }

    public ValueTask<string?> EndReasonAsync() => new((string?)null);

    public void Abort()
    {
        if (!_link.HasEnded)
        {
            _link.Abort();
        }

        OnArrived();
    }

    public ValueTask DisposeAsync()
    {
        Abort();
        return ValueTask.CompletedTask;
    }

    private void OnArrived()
    {
        if (_reader is { } reader && (CopyTo(_target) is var count && (count > 0 || _link.HasEnded)))
        {
            _reader = null;
            reader.SetResult(count);
        }
    }

    private int CopyTo(Memory<byte> buffer)
    {
        if (_read == _frame.Length)
        {
            (_frame, _read) = (_link.Take() ?? [], 0);
        }

        int count = Math.Min(buffer.Length, _frame.Length - _read);
        _frame.AsMemory(_read, count).CopyTo(buffer);
        _read += count;
        return count;
    }
}
