using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Transport;

/// <summary>Receives complete frames. The payload is valid during the call only. False ends the reading.</summary>
internal delegate bool FrameSink(ReadOnlySpan<byte> payload);

/// <summary>
/// One proven connection to a peer. The thread that calls <see cref="Run"/> reads: it cuts the link's bytes into frames
/// and delivers them in place. A <see cref="PeerWriter"/> sends. Owned by the reading thread; <see cref="TrySend"/> and
/// <see cref="Close"/> from any thread.
/// </summary>
internal sealed class PeerConnection
{
    private const int ReceiveBytes = 128 * 1024;

    /// <summary>Fewest free bytes for a read: the size of a TLS record.</summary>
    private const int ReadBytesMin = 16 * 1024;

    private readonly PeerLinksOptions _options;
    private readonly PeerSocket _socket;
    private readonly SslStream _tls;
    private readonly PeerWriter _writer;
    private volatile bool _heard;
    private volatile bool _delivering;
    private string? _reason;
    private int _silentTicks;

    public PeerConnection(PeerLinksOptions options, ProvenPeer peer, PeerSocket socket, SslStream tls)
    {
        _options = options;
        _socket = socket;
        _tls = tls;
        _writer = new PeerWriter(options, socket, tls, Close);
        Peer = peer.Id;
        DirectoryId = peer.DirectoryId;
    }

    public NodeId Peer { get; }

    /// <summary>The peer's data directory.</summary>
    public ulong DirectoryId { get; }

    public EndPoint? Remote => _socket.RemoteEndPoint;

    /// <summary>Why the connection ended.</summary>
    public string Reason => Volatile.Read(ref _reason) ?? "it is still open";

    /// <summary>
    /// Queues a frame with its prefix, and takes over its buffer in any case. False when it was dropped;
    /// <paramref name="full"/> when the queue has just become full.
    /// </summary>
    public bool TrySend(ByteBuffer frame, bool isUrgent, out bool full) => _writer.TrySend(frame, isUrgent, out full);

    /// <summary>Frames wait to be written. Any thread.</summary>
    public bool HasWaiting => _writer.HasWaiting;

    /// <summary>
    /// Reads and delivers frames until the connection ends, then releases everything. Called once, by the owning
    /// thread.
    /// </summary>
    public void Run(FrameSink sink)
    {
        _socket.Spin = _options.ReadSpin;
        _writer.Start($"peer {Peer} writer");
        try
        {
            ReadFrames(sink);
            Close("the peer closed it");
        }
        catch (Exception error) when (error is IOException or ObjectDisposedException)
        {
            Close(error.Message);
        }
        finally
        {
            Close("it failed");
            _writer.Join();
            _tls.Dispose();
        }
    }

    /// <summary>Ends the connection; <see cref="Run"/> returns soon after. The first reason is kept.</summary>
    public void Close(string reason)
    {
        if (Interlocked.CompareExchange(ref _reason, reason, null) is null)
        {
            _writer.Close();
            _socket.Close();
        }
    }

    /// <summary>
    /// Called at regular intervals by one thread. Sends a keep-alive frame if nothing else was sent, and closes the
    /// connection when nothing was received in <paramref name="silentTicksMax"/> intervals. <paramref name="grace"/>:
    /// this process itself was paused, so silence proves nothing.
    /// </summary>
    public void Tick(int silentTicksMax, bool grace)
    {
        if (TakeActivity() || grace)
        {
            _silentTicks = 0;
        }
        else if (++_silentTicks >= silentTicksMax)
        {
            Close($"nothing was heard for {_options.SilenceMax.TotalSeconds:0.#} s");
            return;
        }

        if (!_writer.TakeActivity())
        {
            ByteBuffer frame = ByteBuffer.Rent(PeerProtocol.FramePrefixBytes);
            frame.Take(PeerProtocol.FramePrefixBytes).Clear();
            TrySend(frame, isUrgent: true, out _);
        }
    }

    /// <summary>Whether bytes arrived since the last call, or the receiver is still processing a frame.</summary>
    private bool TakeActivity()
    {
        bool active = _heard || _delivering;
        _heard = false;
        return active;
    }

    /// <summary>Reads until the stream ends or the sink returns false.</summary>
    /// <exception cref="IOException">The stream failed, or the peer violated the protocol.</exception>
    private void ReadFrames(FrameSink sink)
    {
        byte[] buffer = BufferArrays.Rent(ReceiveBytes);
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
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>Delivers every complete frame. <paramref name="missing"/>: whole size of the incomplete one.</summary>
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
                bool goOn = sink(received.Slice(start + PeerProtocol.FramePrefixBytes, (int)length));
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
            // Grows for one large frame, and shrinks to the usual size after it.
            byte[] other = BufferArrays.Rent(wanted);
            buffer.AsSpan(start, rest).CopyTo(other);
            BufferArrays.Return(buffer);
            buffer = other;
        }
        else if (rest > 0 && (start + missing > buffer.Length || buffer.Length - end < ReadBytesMin))
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
