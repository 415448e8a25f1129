using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.Transport;

/// <summary>
/// The frames that wait for one connection, and who writes them. <see cref="TrySend"/> and <see cref="Close"/> from any thread; <see cref="Start"/> and
/// <see cref="Join"/> by the connection's owner.
/// <para>
/// Who queues a frame while nobody writes becomes the writer: it encrypts and hands to the kernel what waits, in its own thread, as long as the kernel
/// takes it without blocking. What the kernel does not take, large frames and what others keep adding meanwhile go to the writer thread, which may
/// block. So a frame costs no hop between threads as long as the peer reads, and the caller never waits for the network.
/// </para>
/// <para>
/// Urgent frames have a queue of their own, which is written first. Behind megabytes of entries on a slow link a heartbeat waits for the frame that is
/// being written and for what the kernel holds, and for nothing else.
/// </para>
/// </summary>
internal sealed class PeerWriter(PeerLinksOptions options, PeerSocket socket, Stream tls, Action<string> broken)
{
    /// <summary>Frames that wait are packed into one write up to this size: four TLS records, as much as the reader takes at once.</summary>
    private const int PackBytesMax = 64 * 1024;

    /// <summary>Encrypting more than this (some 30 µs) is left to the writer thread.</summary>
    private const int InlineBytesMax = 64 * 1024;

    /// <summary>A caller writes this often at most when others add frames faster than it writes them.</summary>
    private const int InlineRoundsMax = 4;

    /// <summary>The writer thread sends a large frame in pieces of about this size.</summary>
    private const int PushBytes = 256 * 1024;

    private readonly object _gate = new();
    private readonly Queue<ByteBuffer> _urgent = new();
    private readonly Queue<ByteBuffer> _queue = new();

    /// <summary>Frames that the present writer packs, and where; used by whoever writes.</summary>
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

    /// <summary>A frame that is queued now waits for others; any thread.</summary>
    public bool HasWaiting => Volatile.Read(ref _queuedBytes) > 0;

    /// <summary>Starts the writer thread.</summary>
    public void Start(string name)
    {
        socket.PushBytes = int.MaxValue;
        _thread = new Thread(WriteBlocking) { IsBackground = true, Name = name };
        _thread.Start();
    }

    /// <summary>After <see cref="Close"/>: waits until nobody writes, and releases what is held.</summary>
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

    /// <summary>Takes no further frame and drops those that wait.</summary>
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

    /// <summary>Queues a frame, complete with its prefix, and takes it over in any case. False when it was dropped; <paramref name="full"/> when the queue has just become full.</summary>
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
            // Whatever the kernel or TLS brings about is the end of this connection; the caller may be a loop in its turn, for which it is nothing unusual.
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
    /// Moves the next frames to <see cref="_taken"/>. False when there are none, or when the writer thread has them (<paramref name="inline"/> only): the caller
    /// is the writer no longer.
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
                // A caller has written its share.
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

    /// <summary>Moves as many frames of a queue as one write takes beside what is taken already; their bytes.</summary>
    private int TakeFrom(Queue<ByteBuffer> queue, ref long queuedBytes, int taken, bool inline)
    {
        int bytes = 0;
        while (queue.TryPeek(out ByteBuffer? frame) && (taken + bytes == 0 || taken + bytes + frame.Length <= PackBytesMax))
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
