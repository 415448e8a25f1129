using Kahuna.Wire.Buffers;
using Kahuna.Wire.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>
/// The send queue of one connection, and its writers. <see cref="TrySend"/> and <see cref="Close"/> from any thread;
/// <see cref="Start"/> and <see cref="Join"/> by the connection's owner.
/// <para>
/// A caller that queues a frame while no thread is writing becomes the writer: in its own thread it encrypts the queued
/// frames and passes them to the kernel, as long as the kernel accepts them without blocking. Bytes that the kernel
/// does not accept, large frames, and frames that other callers keep adding go to the writer thread, which may block.
/// So a frame needs no thread switch while the peer reads, and a caller never waits for the network.
/// </para>
/// <para>
/// Urgent frames have their own queue, which is written first. On a slow link with megabytes of queued entries, a
/// heartbeat waits only for the frame being written and for the kernel's buffer.
/// </para>
/// </summary>
internal sealed class PeerWriter(PeerLinksOptions options, BlockingSocket socket, Stream tls, Action<string> broken)
{
    /// <summary>
    /// Most bytes of queued frames in one write: four TLS records, as much as the reader takes at once.
    /// </summary>
    private const int PackBytesMax = 64 * 1024;

    /// <summary>Largest frame that a caller encrypts (some 30 µs); larger ones go to the writer thread.</summary>
    private const int InlineBytesMax = 64 * 1024;

    /// <summary>Most writes of one caller, in case others add frames faster than it writes them.</summary>
    private const int InlineRoundsMax = 4;

    /// <summary>The writer thread sends large frames in pieces of about this size.</summary>
    private const int PushBytes = 256 * 1024;

    private readonly object _gate = new();
    private readonly Queue<ByteBuffer> _urgent = new();
    private readonly Queue<ByteBuffer> _queue = new();

    /// <summary>Frames taken by the current writer, and its packing buffer. Used only by the current writer.</summary>
    private readonly List<ByteBuffer> _taken = new(64);
    private readonly ByteBuffer _pack = ByteBuffer.Rent(PackBytesMax);

    private long _urgentBytes;
    private long _queuedBytes;
    private bool _writing;
    private bool _handedOver;
    private bool _closed;
    private bool _wasFull;
    private volatile bool _sent;
    private Thread? _thread;

    /// <summary>A frame queued now would wait behind others. Any thread.</summary>
    public bool HasWaiting => Volatile.Read(ref _queuedBytes) > 0;

    /// <summary>Starts the writer thread.</summary>
    public void Start(string name)
    {
        socket.PushBytes = int.MaxValue;
        _thread = new Thread(WriteBlocking) { IsBackground = true, Name = name };
        _thread.Start();
    }

    /// <summary>After <see cref="Close"/>: waits until no thread writes, and releases the buffers.</summary>
    public void Join()
    {
        _thread?.Join();
        lock (_gate)
        {
            while (_writing)
            {
                Monitor.Wait(_gate);
            }
        }

        _pack.Return();
    }

    /// <summary>Drops the queued frames and refuses later ones.</summary>
    public void Close()
    {
        lock (_gate)
        {
            _closed = true;
            while (_urgent.TryDequeue(out ByteBuffer? frame) || _queue.TryDequeue(out frame))
            {
                frame.Return();
            }

            Monitor.PulseAll(_gate);
        }
    }

    /// <summary>Whether anything was written since the last call.</summary>
    public bool TakeActivity()
    {
        bool sent = _sent;
        _sent = false;
        return sent;
    }

    /// <summary>
    /// Queues a frame with its prefix, and takes over its buffer in any case. False when it was dropped;
    /// <paramref name="full"/> when the queue has just become full.
    /// </summary>
    public bool TrySend(ByteBuffer frame, bool isUrgent, out bool full)
    {
        full = false;
        bool dropped = false;
        lock (_gate)
        {
            Queue<ByteBuffer> queue = isUrgent ? _urgent : _queue;
            ref long bytes = ref (isUrgent ? ref _urgentBytes : ref _queuedBytes);
            if (_closed || bytes + frame.Length > options.QueueBytesMax || queue.Count >= options.QueueFramesMax)
            {
                full = !_closed && !_wasFull;
                _wasFull |= full;
                dropped = true;
            }
            else
            {
                queue.Enqueue(frame);
                Volatile.Write(ref bytes, bytes + frame.Length);
                if (_writing)
                {
                    return true;
                }

                _writing = true;
            }
        }

        if (dropped)
        {
            frame.Return();
            return false;
        }

        WriteInline();
        return true;
    }

    private void WriteInline()
    {
        try
        {
            for (int round = 0; Take(inline: round < InlineRoundsMax); round++)
            {
                WriteTaken();
                if (!socket.TryPush())
                {
                    HandOver();
                    return;
                }
            }
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // Any exception of the kernel or TLS ends this connection. The caller may be a partition's loop, which must
            // not fail from it.
            StopWriting(error.Message);
        }
    }

    private void WriteBlocking()
    {
        while (WaitForWork())
        {
            try
            {
                socket.PushBytes = PushBytes;
                socket.Push();
                while (Take(inline: false))
                {
                    WriteTaken();
                    socket.Push();
                }
            }
            catch (Exception error) when (error is not OutOfMemoryException)
            {
                StopWriting(error.Message);
            }
        }
    }

    private bool WaitForWork()
    {
        lock (_gate)
        {
            while (!_handedOver && !_closed)
            {
                Monitor.Wait(_gate);
            }

            if (_closed && _handedOver)
            {
                _handedOver = false;
                _writing = false;
                Monitor.PulseAll(_gate);
            }

            return !_closed;
        }
    }

    /// <summary>
    /// Moves the next frames to <see cref="_taken"/>. False when there are none, or when the writer thread takes over
    /// (<paramref name="inline"/> only): the caller is no longer the writer.
    /// </summary>
    private bool Take(bool inline)
    {
        lock (_gate)
        {
            if (_closed || _urgent.Count + _queue.Count == 0)
            {
                _wasFull = false;
                _handedOver = false;
                socket.PushBytes = int.MaxValue;
                _writing = false;
                if (_closed)
                {
                    Monitor.PulseAll(_gate);
                }

                return false;
            }

            if (!inline && !_handedOver)
            {
                // The caller has written its share.
                HandOver();
                return false;
            }

            int bytes = TakeFrom(_urgent, ref _urgentBytes, taken: 0, inline);
            bytes += TakeFrom(_queue, ref _queuedBytes, bytes, inline);
            if (bytes == 0)
            {
                HandOver();
            }

            return bytes > 0;
        }
    }

    /// <summary>
    /// Moves as many frames of a queue as fit into one write besides those already taken. Returns their bytes.
    /// </summary>
    private int TakeFrom(Queue<ByteBuffer> queue, ref long queuedBytes, int taken, bool inline)
    {
        int bytes = 0;
        while (queue.TryPeek(out ByteBuffer? frame)
            && (taken + bytes == 0 || taken + bytes + frame.Length <= PackBytesMax))
        {
            if (inline && frame.Length > InlineBytesMax)
            {
                break;
            }

            queue.Dequeue();
            _taken.Add(frame);
            bytes += frame.Length;
        }

        Volatile.Write(ref queuedBytes, queuedBytes - bytes);
        return bytes;
    }

    private void WriteTaken()
    {
        try
        {
            if (_taken.Count == 1)
            {
                tls.Write(_taken[0].Array, 0, _taken[0].Length);
            }
            else
            {
                _pack.Length = 0;
                foreach (ByteBuffer frame in _taken)
                {
                    _pack.Append(frame.Written);
                }

                tls.Write(_pack.Array, 0, _pack.Length);
            }

            _sent = true;
        }
        finally
        {
            foreach (ByteBuffer frame in _taken)
            {
                frame.Return();
            }

            _taken.Clear();
        }
    }

    private void HandOver()
    {
        lock (_gate)
        {
            _handedOver = true;
            Monitor.PulseAll(_gate);
        }
    }

    private void StopWriting(string reason)
    {
        broken(reason);
        lock (_gate)
        {
            _handedOver = false;
            _writing = false;
            Monitor.PulseAll(_gate);
        }
    }
}
