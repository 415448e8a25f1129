using System.ComponentModel;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Sockets;

/// <summary>
/// The stream between TLS and the socket of one link, of a node or of a client. Reads block the reading thread in the
/// kernel, the shortest way from the network to the waiting code. Writes are buffered and sent by
/// <see cref="TryPush"/>, which never blocks, or <see cref="Push"/>, which does. The socket must never be used
/// asynchronously: that would switch it to non-blocking mode permanently. One thread reads; one at a time writes;
/// <see cref="Close"/> from any thread.
/// </summary>
internal sealed partial class BlockingSocket : Stream
{
    /// <summary>Four TLS records: one system call for a burst of frames.</summary>
    private const int ReceiveBytes = 64 * 1024;

    /// <summary>Two TLS records to send.</summary>
    private const int PendingBytes = 32 * 1024;

    /// <summary>A larger buffer for bytes to send is given back when they are sent.</summary>
    private const int KeptPendingBytes = 512 * 1024;

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
    private byte[] _pending = BufferArrays.Rent(PendingBytes);
    private int _pendingStart;
    private int _pendingEnd;
    private volatile bool _closed;

    public BlockingSocket(Socket socket)
    {
        _socket = socket;
        socket.NoDelay = true;
        RemoteEndPoint = socket.RemoteEndPoint;
    }

    public EndPoint? RemoteEndPoint { get; }

    /// <summary>The socket, to wait for.</summary>
    public Socket Inner => _socket;

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

    private void Restart()
    {
        _pendingStart = _pendingEnd = 0;
        if (_pending.Length > KeptPendingBytes)
        {
            BufferArrays.Return(_pending);
            _pending = BufferArrays.Rent(PendingBytes);
        }
    }

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
