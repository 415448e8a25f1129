using System.Buffers.Binary;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Frames;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Client.Wire.Protos;
using Frame = Kahuna.Client.Wire.Frames.Frame;

namespace Kahuna.Client.Connection;

/// <summary>
/// Understands what a node sends and delivers it: replies to their operations, everything else to the stream's owner.
/// Owned by a <see cref="NodeStream"/> and used by its reader alone; <see cref="LastHeard"/> by any thread.
/// </summary>
internal sealed class ReplyReader(NodeStream stream, IStreamOwner owner)
{
    private ReceivedReply[] _replies = new ReceivedReply[64];
    private long _lastHeard;
    private bool _isGreeted;

    /// <summary>When bytes came last.</summary>
    public long LastHeard => Volatile.Read(ref _lastHeard);

    /// <summary>Delivers all whole frames that were received together.</summary>
    /// <exception cref="InvalidDataException">The node sent what the protocol does not allow.</exception>
    public void Deliver(FrameReader frames, long now)
    {
        Volatile.Write(ref _lastHeard, now);
        try
        {
            while (frames.TryTake(out ReadOnlySpan<byte> payload))
            {
                Deliver(payload, now);
            }
        }
        finally
        {
            stream.Uncork();
        }
    }

    private void Deliver(ReadOnlySpan<byte> payload, long now)
    {
        if (!Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out int count))
        {
            throw new InvalidDataException("a frame is shorter than its header");
        }

        ReadOnlySpan<byte> body = payload[Frame.HeaderBytes..];
        if (!_isGreeted)
        {
            if (kind != FrameKind.Hello || version != Limits.WireVersion)
            {
                throw new InvalidDataException(kind == FrameKind.Hello
                    ? FormattableString.Invariant($"the node speaks wire version {version}, this client {Limits.WireVersion}")
                    : "the node did not greet");
            }

            _isGreeted = true;
            return;
        }

        switch (kind)
        {
            case FrameKind.Replies:
                DeliverReplies(body, count, now);
                break;
            case FrameKind.Map:
                owner.OnMap(stream, ParseMap(body));
                break;
            case FrameKind.GoAway:
                owner.OnGoAway(stream);
                break;
            default:
                throw new InvalidDataException(FormattableString.Invariant($"a frame has the kind {(byte)kind}, which no node sends"));
        }
    }

    private void DeliverReplies(ReadOnlySpan<byte> body, int count, long now)
    {
        Span<ReceivedReply> replies = Parse(body, count);
        stream.Resolve(replies, now);
        foreach (ref ReceivedReply reply in replies)
        {
            OperationRef reference = reply.Reference;
            if (reference.Operation is null)
            {
                // Its caller has given up and its place serves another request, or the node answered twice.
                continue;
            }

            Outcome.TryRead(body.Slice(reply.Offset, reply.Length), out Outcome outcome);
            if (reply.IsRefusal)
            {
                owner.OnRefused(reference, outcome.Status, outcome.Status == OutcomeStatus.NotLeader ? (int)outcome.Number : 0);
            }
            else if (reference.TryEnd())
            {
                reference.Operation.Complete(in outcome);
            }

            reply.Reference = default;
        }
    }

    /// <summary>Finds the replies in a frame. Checks them all before the first is delivered, so that a bad frame ends the stream and nothing else.</summary>
    private Span<ReceivedReply> Parse(ReadOnlySpan<byte> body, int count)
    {
        const int LeastBytes = Frame.ReplyHeaderBytes + Outcome.HeaderBytes;
        if (count > body.Length / LeastBytes)
        {
            throw new InvalidDataException("a frame of replies is shorter than its count says");
        }

        if (_replies.Length < count)
        {
            _replies = new ReceivedReply[Math.Max(count, 2 * _replies.Length)];
        }

        int at = 0;
        for (int i = 0; i < count; i++)
        {
            if (body.Length - at < LeastBytes)
            {
                throw new InvalidDataException("a frame of replies is shorter than its count says");
            }

            uint length = BinaryPrimitives.ReadUInt32LittleEndian(body[(at + 4)..]);
            if (length > body.Length - at - Frame.ReplyHeaderBytes || !Outcome.TryRead(body.Slice(at + Frame.ReplyHeaderBytes, (int)length), out Outcome outcome))
            {
                throw new InvalidDataException("a reply is malformed");
            }

            _replies[i] = new ReceivedReply
            {
                Number = BinaryPrimitives.ReadUInt32LittleEndian(body[at..]),
                Offset = at + Frame.ReplyHeaderBytes,
                Length = (int)length,
                IsRefusal = outcome.Status is OutcomeStatus.NotLeader or OutcomeStatus.Busy or OutcomeStatus.Unavailable or OutcomeStatus.Expired
                    or OutcomeStatus.Unknown or OutcomeStatus.SessionUnknown,
                IsUnknown = outcome.Status == OutcomeStatus.Unknown,
            };
            at += Frame.ReplyHeaderBytes + (int)length;
        }

        return at == body.Length ? _replies.AsSpan(0, count) : throw new InvalidDataException("a frame of replies is longer than its count says");
    }

    private static DescribeClusterResponse ParseMap(ReadOnlySpan<byte> body)
    {
        try
        {
            return DescribeClusterResponse.Parser.ParseFrom(body);
        }
        catch (Google.Protobuf.InvalidProtocolBufferException e)
        {
            throw new InvalidDataException($"the cluster's description cannot be read: {e.Message}", e);
        }
    }
}
