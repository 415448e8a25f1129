using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>Decorates the links to the other nodes and traces votes before they are sent. Any thread.</summary>
internal sealed class TracedTransport(IPeerTransport links, NodeTrace trace, NodeId self) : IPeerTransport
{
    private int _headerBytes;

    public ByteBuffer BeginFrame()
    {
        // Equal for all frames of a transport.
        ByteBuffer frame = links.BeginFrame();
        _headerBytes = frame.Length;
        return frame;
    }

    public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent = false)
    {
        ReadOnlySpan<byte> rest = frame.Written[_headerBytes..];
        while (PeerFrame.TryRead(ref rest, out GroupId group, out RaftMessage message, out _))
        {
            if (!NodeTrace.Follows(group))
            {
                continue;
            }

            if (message.Kind == RaftMessageKind.Vote)
            {
                trace.Voted(group, message.Term, self);
            }
            else if (message is { Kind: RaftMessageKind.VoteReply, Reject: false })
            {
                trace.Voted(group, message.Term, peer);
            }
        }

        trace.Flush();
        return links.TrySend(peer, frame, isUrgent);
    }

    public bool HasWaiting(NodeId peer) => links.HasWaiting(peer);
}
