using System.Net;
using System.Net.Security;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// One proven connection to a peer. Owned by the thread that runs <see cref="Run"/>, which reads and delivers. <see cref="TrySend"/> and
/// <see cref="Close"/> may come from any thread.
/// </summary>
internal sealed class PeerConnection
{
    private readonly PeerLinksOptions _options;
    private readonly PeerSocket _socket;
    private readonly SslStream _tls;
    private readonly PeerReader _reader;
    private readonly PeerWriter _writer;
    private string? _reason;
    private int _silentTicks;

    public PeerConnection(PeerLinksOptions options, ProvenPeer peer, PeerSocket socket, SslStream tls)
    {
        _options = options;
        _socket = socket;
        _tls = tls;
        _reader = new PeerReader(tls);
        _writer = new PeerWriter(options, socket, tls, Close);
        Peer = peer.Id;
        DirectoryId = peer.DirectoryId;
    }

    public NodeId Peer { get; }

    /// <summary>The data directory that the peer has shown.</summary>
    public ulong DirectoryId { get; }

    public EndPoint? Remote => _socket.RemoteEndPoint;

    /// <summary>Why the connection ended.</summary>
    public string Reason => Volatile.Read(ref _reason) ?? "it is still open";

    /// <summary>Queues a frame, complete with its prefix, and takes it over in any case. False when it was dropped; <paramref name="full"/> when the queue has just become full.</summary>
    public bool TrySend(ByteBuffer frame, bool isUrgent, out bool full) => _writer.TrySend(frame, isUrgent, out full);

    /// <summary>Frames wait to be written; any thread.</summary>
    public bool HasWaiting => _writer.HasWaiting;

    /// <summary>Reads and delivers until the connection ends, then releases everything. By the owning thread, once.</summary>
    public void Run(FrameSink sink)
    {
        _socket.Spin = _options.ReadSpin;
        _writer.Start($"peer {Peer} writer");
        try
        {
            _reader.Run(sink);
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

    /// <summary>Ends the connection; <see cref="Run"/> returns soon after. The first reason counts.</summary>
    public void Close(string reason)
    {
        if (Interlocked.CompareExchange(ref _reason, reason, null) is null)
        {
            _writer.Close();
            _socket.Close();
        }
    }

    /// <summary>
    /// Called in regular intervals by one thread: shows the peer that this side lives, and closes the connection when nothing was heard in
    /// <paramref name="silentTicksMax"/> intervals. <paramref name="grace"/>: this process was stopped itself, so silence proves nothing.
    /// </summary>
    public void Tick(int silentTicksMax, bool grace)
    {
        if (_reader.TakeActivity() || grace)
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
}
