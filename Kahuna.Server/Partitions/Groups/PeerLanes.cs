using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What a turn says to one peer: a frame of entries and what must stay behind them, and a frame of what must not wait
/// behind them (heartbeats, votes, answers). While nothing waits for the peer both leave as one. Owned by one loop; not
/// thread-safe.
/// </summary>
internal sealed class PeerLanes(IPeerTransport transport, NodeId peer)
{
    private ByteBuffer? _urgent;
    private ByteBuffer? _bulk;
    private int _urgentAt;

    /// <summary>The open frame that takes this message.</summary>
    public ByteBuffer For(in RaftMessage message)
    {
        if (message.Kind is RaftMessageKind.Append or RaftMessageKind.Forward
            || message is { Kind: RaftMessageKind.Heartbeat, InOrder: true })
        {
            return _bulk ??= transport.BeginFrame();
        }

        if (_urgent is null)
        {
            _urgent = transport.BeginFrame();
            _urgentAt = _urgent.Length;
        }

        return _urgent;
    }

    /// <summary>
    /// Sends what is open. False when entries, or something else that the sender counts on, were dropped.
    /// </summary>
    public bool TrySend()
    {
        bool isSent = true;
        if (_urgent is { } urgent)
        {
            _urgent = null;
            if (_bulk is null || transport.HasWaiting(peer))
            {
                isSent = transport.TrySend(peer, urgent, isUrgent: true);
            }
            else
            {
                _bulk.Append(urgent.Written[_urgentAt..]);
                urgent.Return();
            }
        }

        return TrySendBulk() && isSent;
    }

    /// <summary>Sends the frame of entries, if one is open.</summary>
    public bool TrySendBulk()
    {
        ByteBuffer? bulk = _bulk;
        _bulk = null;
        return bulk is null || transport.TrySend(peer, bulk);
    }
}
