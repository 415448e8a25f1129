using System.ComponentModel;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Kahuna.Wire.Buffers;

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
internal sealed class PeerWriter(PeerLinksOptions options, PeerSocket socket, Stream tls, Action<string> broken)
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

/// <summary>
/// The stream between TLS and the socket of one link. Reads block the reading thread in the kernel, the shortest way
/// from the network to the waiting code. Writes are buffered and sent by <see cref="TryPush"/>, which never blocks, or
/// <see cref="Push"/>, which does. The socket must never be used asynchronously: that would switch it to non-blocking
/// mode permanently. One thread reads; one at a time writes; <see cref="Close"/> from any thread.
/// </summary>
internal sealed partial class PeerSocket : Stream
{
    /// <summary>Four TLS records: one system call for a burst of frames.</summary>
    private const int ReceiveBytes = 64 * 1024;

    /// <summary>How long a blocking writer waits before it checks whether the link was closed.</summary>
    private const int PollMicroseconds = 500_000;

    /// <summary>MSG_DONTWAIT | MSG_NOSIGNAL on Linux.</summary>
    private const int DontWait = 0x40 | 0x4000;

    private const int TryAgain = 11;
    private const int Interrupted = 4;

    private readonly Socket _socket;
    private readonly byte[] _received = BufferArrays.Rent(ReceiveBytes);
    private int _receivedStart;
    private int _receivedEnd;
    private byte[] _pending = BufferArrays.Rent(32 * 1024);
    private int _pendingStart;
    private int _pendingEnd;
    private volatile bool _closed;

    public PeerSocket(Socket socket)
    {
        _socket = socket;
        socket.NoDelay = true;
        RemoteEndPoint = socket.RemoteEndPoint;
    }

    public EndPoint? RemoteEndPoint { get; }

    /// <summary>
    /// Buffered bytes at which a write sends them and blocks. Initially 0: during the handshakes every write sends.
    /// </summary>
    public int PushBytes { get; set; }

    /// <summary>How long a read polls for bytes, yielding to other threads, before it blocks in the kernel.</summary>
    public TimeSpan Spin { get; set; }

    public override bool CanRead => true;
    public override bool CanSeek => false;
    public override bool CanWrite => true;
    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    /// <summary>Makes the kernel close a connection whose data is not acknowledged.</summary>
    public static void LimitSilence(Socket socket, TimeSpan limit)
    {
        if (OperatingSystem.IsLinux())
        {
            // IPPROTO_TCP, TCP_USER_TIMEOUT.
            socket.SetRawSocketOption(6, 18, BitConverter.GetBytes((int)limit.TotalMilliseconds));
        }
    }

    public override int Read(Span<byte> buffer)
    {
        if (_receivedStart == _receivedEnd)
        {
            _receivedEnd = SpinForBytes() is int early and >= 0 ? early : WaitForBytes();
            _receivedStart = 0;
        }

        int taken = Math.Min(buffer.Length, _receivedEnd - _receivedStart);
        _received.AsSpan(_receivedStart, taken).CopyTo(buffer);
        _receivedStart += taken;
        return taken;
    }

    public override int Read(byte[] buffer, int offset, int count) => Read(buffer.AsSpan(offset, count));

    public override void Write(ReadOnlySpan<byte> buffer)
    {
        Reserve(buffer.Length);
        buffer.CopyTo(_pending.AsSpan(_pendingEnd));
        _pendingEnd += buffer.Length;
        if (_pendingEnd - _pendingStart >= PushBytes)
        {
            Push();
        }
    }

    public override void Write(byte[] buffer, int offset, int count) => Write(buffer.AsSpan(offset, count));

    /// <summary>Does nothing: the link decides when bytes are sent.</summary>
    public override void Flush()
    {
    }

    /// <summary>Sends what the kernel accepts without blocking. True when nothing is left.</summary>
    public bool TryPush()
    {
        while (_pendingStart < _pendingEnd)
        {
            int sent = SendNow(_pending.AsSpan(_pendingStart, _pendingEnd - _pendingStart));
            if (sent <= 0)
            {
                return false;
            }

            _pendingStart += sent;
        }

        Restart();
        return true;
    }

    /// <summary>Sends everything, and blocks until it is sent or the link is closed.</summary>
    public void Push()
    {
        while (!TryPush())
        {
            if (_closed)
            {
                throw new IOException("the link was closed");
            }

            _socket.Poll(PollMicroseconds, SelectMode.SelectWrite);
            if (!OperatingSystem.IsLinux())
            {
                _pendingStart += _socket.Send(
                    _pending.AsSpan(_pendingStart, _pendingEnd - _pendingStart), SocketFlags.None);
            }
        }
    }

    /// <summary>Ends reads and writes in all threads.</summary>
    public new void Close()
    {
        _closed = true;
        try
        {
            _socket.Shutdown(SocketShutdown.Both);
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // It is closed already.
        }
    }

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();
    public override void SetLength(long value) => throw new NotSupportedException();

    /// <summary>By the reading thread, when no other thread uses the stream.</summary>
    protected override void Dispose(bool disposing)
    {
        if (disposing && _pending.Length > 0)
        {
            _closed = true;
            _socket.Dispose();
            BufferArrays.Return(_received);
            BufferArrays.Return(_pending);
            _pending = [];
            _pendingStart = _pendingEnd = 0;
        }

        base.Dispose(disposing);
    }

    /// <summary>Polls for bytes for a moment, yielding to every runnable thread; -1 if none arrived.</summary>
    private unsafe int SpinForBytes()
    {
        if (Spin == TimeSpan.Zero || !OperatingSystem.IsLinux())
        {
            return -1;
        }

        long began = Stopwatch.GetTimestamp();
        do
        {
            nint count;
            fixed (byte* start = _received)
            {
                count = Receive(_socket.SafeHandle, start, ReceiveBytes, DontWait);
            }

            if (count >= 0)
            {
                return (int)count;
            }

            Thread.Yield();
        }
        while (Stopwatch.GetElapsedTime(began) < Spin);

        return -1;
    }

    private int WaitForBytes()
    {
        int count = _socket.Receive(_received.AsSpan(0, ReceiveBytes), SocketFlags.None, out SocketError error);
        return error == SocketError.Success ? count : throw new IOException(Describe(error));
    }

    private static string Describe(SocketError error) => new SocketException((int)error).Message;

    private void Reserve(int bytes)
    {
        if (_pending.Length - _pendingEnd >= bytes)
        {
            return;
        }

        int waiting = _pendingEnd - _pendingStart;
        byte[] target = _pending.Length - waiting >= bytes
            ? _pending
            : BufferArrays.Rent(Math.Max(waiting + bytes, _pending.Length * 2));
        _pending.AsSpan(_pendingStart, waiting).CopyTo(target);
        if (target != _pending)
        {
            BufferArrays.Return(_pending);
            _pending = target;
        }

        _pendingStart = 0;
        _pendingEnd = waiting;
    }

    private void Restart() => _pendingStart = _pendingEnd = 0;

    /// <summary>
    /// Sends without blocking and returns the bytes that the kernel accepted; 0 if none. Systems other than Linux leave
    /// it to the blocking writer.
    /// </summary>
    private unsafe int SendNow(ReadOnlySpan<byte> bytes)
    {
        if (!OperatingSystem.IsLinux())
        {
            return 0;
        }

        while (true)
        {
            nint sent;
            fixed (byte* start = bytes)
            {
                sent = Send(_socket.SafeHandle, start, bytes.Length, DontWait);
            }

            if (sent >= 0)
            {
                return (int)sent;
            }

            switch (Marshal.GetLastPInvokeError())
            {
                case Interrupted:
                    continue;
                case TryAgain:
                    return 0;
                case int error:
                    throw new IOException(new Win32Exception(error).Message);
            }
        }
    }

    [LibraryImport("libc", EntryPoint = "recv", SetLastError = true)]
    private static unsafe partial nint Receive(SafeHandle socket, byte* bytes, nint length, int flags);

    [LibraryImport("libc", EntryPoint = "send", SetLastError = true)]
    private static unsafe partial nint Send(SafeHandle socket, byte* bytes, nint length, int flags);
}
