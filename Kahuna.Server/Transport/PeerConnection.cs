using System.Buffers;
using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// One proven connection to a peer: its queue, its writers and its reader. Owned by the thread that runs <see cref="Run"/>, which reads and delivers.
/// <see cref="TrySend"/> and <see cref="Close"/> may come from any thread.
/// <para>
/// Who queues a frame while nobody writes becomes the writer: it encrypts and hands to the kernel what waits, in its own thread, as long as the kernel
/// takes it without blocking. What the kernel does not take, large frames and what others keep adding meanwhile go to the writer thread, which may
/// block. So a frame costs no hop between threads as long as the peer reads, and the caller never waits for the network.
/// </para>
/// </summary>
internal sealed class PeerConnection
{
    /// <summary>Frames that wait are packed into one write up to this size: four TLS records, as much as the reader takes at once.</summary>
    private const int PackBytesMax = 64 * 1024;

    /// <summary>Encrypting more than this (some 30 µs) is left to the writer thread.</summary>
    private const int InlineBytesMax = 64 * 1024;

    /// <summary>A caller writes this often at most when others add frames faster than it writes them.</summary>
    private const int InlineRoundsMax = 4;

    /// <summary>The writer thread sends a large frame in pieces of about this size.</summary>
    private const int PushBytes = 256 * 1024;

    private const int ReceiveBytes = 128 * 1024;

    private readonly PeerLinksOptions _options;
    private readonly PeerSocket _socket;
    private readonly SslStream _tls;
    private readonly object _gate = new();
    private readonly Queue<ByteBuffer> _queue = new();

    /// <summary>Frames that the present writer packs; used by whoever writes.</summary>
    private readonly List<ByteBuffer> _taken = new(64);
    private readonly ByteBuffer _pack = ByteBuffer.Rent(PackBytesMax);

    private long _queuedBytes;
    private bool _writing;
    private bool _handedOver;
    private bool _closed;
    private bool _queueWasFull;
    private string _reason = "the peer closed it";

    private volatile bool _heard;
    private volatile bool _sent;
    private volatile bool _delivering;
    private int _silentTicks;

    public PeerConnection(PeerLinksOptions options, NodeId peer, PeerSocket socket, SslStream tls)
    {
        _options = options;
        _socket = socket;
        _tls = tls;
        Peer = peer;
        socket.PushBytes = int.MaxValue;
    }

    /// <summary>Where frames go; called from the reading thread. False ends the connection: a newer one has taken its place.</summary>
    public delegate bool FrameSink(PeerConnection connection, ReadOnlySpan<byte> payload);

    public NodeId Peer { get; }

    public EndPoint? Remote => _socket.RemoteEndPoint;

    /// <summary>Why the connection ended.</summary>
    public string Reason
    {
        get
        {
            lock (_gate)
            {
                return _reason;
            }
        }
    }

    /// <summary>Queues a frame, complete with its prefix, and takes it over in any case. False when it was dropped; <paramref name="full"/> when the queue has just become full.</summary>
    public bool TrySend(ByteBuffer frame, out bool full)
    {
        full = false;
        bool dropped = false;
        lock (_gate)
        {
            if (_closed || _queuedBytes + frame.Length > _options.QueueBytesMax || _queue.Count >= _options.QueueFramesMax)
            {
                full = !_closed && !_queueWasFull;
                _queueWasFull |= full;
                dropped = true;
            }
            else
            {
                _queue.Enqueue(frame);
                _queuedBytes += frame.Length;
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

    /// <summary>Reads and delivers until the connection ends, then releases everything. By the owning thread, once.</summary>
    public void Run(FrameSink sink)
    {
        Thread writer = new(WriteBlocking) { IsBackground = true, Name = $"peer {Peer} writer" };
        writer.Start();
        try
        {
            Read(sink);
            Close("the peer closed it");
        }
        catch (Exception error) when (error is IOException or ObjectDisposedException)
        {
            Close(error.Message);
        }
        finally
        {
            Close("the receiver failed");
            writer.Join();
            lock (_gate)
            {
                while (_writing)
                {
                    Monitor.Wait(_gate);
                }
            }

            _pack.Return();
            _tls.Dispose();
        }
    }

    /// <summary>Ends the connection; <see cref="Run"/> returns soon after. The first reason counts.</summary>
    public void Close(string reason)
    {
        lock (_gate)
        {
            if (_closed)
            {
                return;
            }

            _closed = true;
            _reason = reason;
            while (_queue.TryDequeue(out ByteBuffer? frame))
            {
                frame.Return();
            }

            Monitor.PulseAll(_gate);
        }

        _socket.Close();
    }

    /// <summary>
    /// Called in regular intervals by one thread: shows the peer that this side lives, and closes the connection when nothing was heard in
    /// <paramref name="silentTicksMax"/> intervals. <paramref name="grace"/>: this process was stopped itself, so silence proves nothing.
    /// </summary>
    public void Tick(int silentTicksMax, bool grace)
    {
        if (_heard || _delivering || grace)
        {
            _heard = false;
            _silentTicks = 0;
        }
        else if (++_silentTicks >= silentTicksMax)
        {
            Close($"nothing was heard for {_options.SilenceMax.TotalSeconds:0.#} s");
            return;
        }

        if (!_sent)
        {
            ByteBuffer frame = ByteBuffer.Rent(PeerProtocol.FramePrefixBytes);
            frame.Take(PeerProtocol.FramePrefixBytes).Clear();
            TrySend(frame, out _);
        }

        _sent = false;
    }

    private void WriteInline()
    {
        try
        {
            for (int round = 0; Take(inline: round < InlineRoundsMax); round++)
            {
                WriteTaken();
                if (!_socket.TryPush())
                {
                    HandOver();
                    return;
                }
            }
        }
        catch (Exception error) when (error is IOException or ObjectDisposedException)
        {
            StopWriting(error.Message);
        }
    }

    private void WriteBlocking()
    {
        while (WaitForWork())
        {
            try
            {
                _socket.PushBytes = PushBytes;
                _socket.Push();
                while (Take(inline: false))
                {
                    WriteTaken();
                    _socket.Push();
                }
            }
            catch (Exception error) when (error is IOException or ObjectDisposedException)
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
            if (_closed || _queue.Count == 0)
            {
                _queueWasFull = false;
                _handedOver = false;
                _socket.PushBytes = int.MaxValue;
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

            int bytes = 0;
            while (_queue.TryPeek(out ByteBuffer? frame) && (bytes == 0 || bytes + frame.Length <= PackBytesMax))
            {
                if (inline && frame.Length > InlineBytesMax)
                {
                    break;
                }

                _queue.Dequeue();
                _taken.Add(frame);
                bytes += frame.Length;
            }

            _queuedBytes -= bytes;
            if (bytes == 0)
            {
                HandOver();
            }

            return bytes > 0;
        }
    }

    private void WriteTaken()
    {
        try
        {
            if (_taken.Count == 1)
            {
                _tls.Write(_taken[0].Array, 0, _taken[0].Length);
            }
            else
            {
                _pack.Length = 0;
                foreach (ByteBuffer frame in _taken)
                {
                    _pack.Append(frame.Written);
                }

                _tls.Write(_pack.Array, 0, _pack.Length);
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
        Close(reason);
        lock (_gate)
        {
            _handedOver = false;
            _writing = false;
            Monitor.PulseAll(_gate);
        }
    }

    private void Read(FrameSink sink)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(ReceiveBytes);
        try
        {
            int start = 0;
            int end = 0;
            while (true)
            {
                int count = _tls.Read(buffer, end, buffer.Length - end);
                if (count == 0)
                {
                    return;
                }

                _heard = true;
                end += count;
                if (!Deliver(sink, buffer.AsSpan(0, end), ref start, out int missing))
                {
                    return;
                }

                MakeRoom(ref buffer, ref start, ref end, missing);
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>Delivers every complete frame. <paramref name="missing"/>: bytes that the incomplete one needs as a whole.</summary>
    private bool Deliver(FrameSink sink, ReadOnlySpan<byte> received, ref int start, out int missing)
    {
        missing = 0;
        while (received.Length - start >= PeerProtocol.FramePrefixBytes)
        {
            uint length = BinaryPrimitives.ReadUInt32LittleEndian(received[start..]);
            if (length > PeerProtocol.FrameBytesMax)
            {
                throw new IOException($"it sent a frame of {length} bytes; {PeerProtocol.FrameBytesMax} are allowed");
            }

            int whole = PeerProtocol.FramePrefixBytes + (int)length;
            if (received.Length - start < whole)
            {
                missing = whole;
                return true;
            }

            if (length > 0)
            {
                _delivering = true;
                bool goOn = sink(this, received.Slice(start + PeerProtocol.FramePrefixBytes, (int)length));
                _delivering = false;
                if (!goOn)
                {
                    return false;
                }
            }

            start += whole;
        }

        return true;
    }

    private static void MakeRoom(ref byte[] buffer, ref int start, ref int end, int missing)
    {
        int rest = end - start;
        int wanted = Math.Max(missing, ReceiveBytes);
        if (wanted > buffer.Length || (buffer.Length > 2 * ReceiveBytes && wanted <= ReceiveBytes))
        {
            // Grows for one large frame, and goes back to the usual size after it.
            byte[] other = ArrayPool<byte>.Shared.Rent(wanted);
            buffer.AsSpan(start, rest).CopyTo(other);
            ArrayPool<byte>.Shared.Return(buffer);
            buffer = other;
        }
        else if (rest > 0 && (start + missing > buffer.Length || buffer.Length - end < 16 * 1024))
        {
            buffer.AsSpan(start, rest).CopyTo(buffer);
        }
        else if (rest > 0)
        {
            return;
        }

        start = 0;
        end = rest;
    }
}
