using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>The frames that a loop fills for its peers during a turn. Owned by one loop; not thread-safe.</summary>
internal sealed class PeerFrames
{
    /// <summary>
    /// A frame of this size leaves before the turn ends, so that the next one is made while it is sent.
    /// </summary>
    private const int FrameBytesTarget = 1 << 20;

    private readonly NodeId[] _peers;
    private readonly PeerLanes[] _lanes;
    private uint _unreachable;

    public PeerFrames(LoopOptions options, IPeerTransport transport)
    {
        _peers = [.. options.Voters.Where(voter => voter != options.Self)];
        _lanes = [.. _peers.Select(peer => new PeerLanes(transport, peer))];
    }

    /// <summary>The open frame that takes a message; null when it is to no peer (ourselves).</summary>
    public ByteBuffer? For(in RaftMessage message)
    {
        int peer = Array.IndexOf(_peers, message.To);
        return peer < 0 ? null : _lanes[peer].For(message);
    }

    public void SendWhenLarge(NodeId to, ByteBuffer frame)
    {
        if (frame.Length >= FrameBytesTarget)
        {
            int peer = Array.IndexOf(_peers, to);
            Note(peer, _lanes[peer].TrySendBulk());
        }
    }

    /// <summary>Sends what is open for each peer.</summary>
    public void Send()
    {
        for (int i = 0; i < _lanes.Length; i++)
        {
            Note(i, _lanes[i].TrySend());
        }
    }

    /// <summary>The next peer to which a frame was lost since the last call.</summary>
    public bool TryTakeUnreachable(out NodeId peer)
    {
        for (int i = 0; i < _peers.Length; i++)
        {
            if ((_unreachable & (1u << i)) != 0)
            {
                _unreachable &= ~(1u << i);
                peer = _peers[i];
                return true;
            }
        }

        peer = default;
        return false;
    }

    private void Note(int peer, bool isSent)
    {
        if (!isSent)
        {
            _unreachable |= 1u << peer;
        }
    }
}
