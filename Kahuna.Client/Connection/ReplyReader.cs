using System.Buffers.Binary;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Protos;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Client.Connection;

/// <summary>
/// Decodes the node's frames: delivers replies to their operations and other frames to the stream's owner. Owned by a
/// <see cref="NodeStream"/> and used by its reader alone; any thread reads <see cref="LastHeard"/>.
/// </summary>
internal sealed class ReplyReader(NodeStream stream, IStreamOwner owner)
{
    private ReceivedReply[] _replies = new ReceivedReply[64];
    private long _lastHeard;
    private bool _isGreeted;

    /// <summary>When bytes arrived last.</summary>
    public long LastHeard => Volatile.Read(ref _lastHeard);

    /// <summary>Delivers all complete frames of one read.</summary>
    /// <exception cref="InvalidDataException">The node violated the protocol.</exception>
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
                    ? FormattableString.Invariant(
                        $"the node speaks wire version {version}, this client {Limits.WireVersion}")
                    : "the node did not send its hello first");
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
                DescribeClusterResponse map = ParseMap(body);
                stream.TakeTraces(map.TakesTraces);
                owner.OnMap(stream, map);
                break;
            case FrameKind.GoAway:
                owner.OnGoAway(stream);
                break;
            default:
                throw new InvalidDataException(
                    FormattableString.Invariant($"a frame has the kind {(byte)kind}, which nodes do not send"));
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
                // The caller has given up and the slot serves another request, or the node answered twice.
                continue;
            }

            Outcome.TryRead(body.Slice(reply.Offset, reply.Length), out Outcome outcome);
            if (reply.IsRefusal)
            {
                bool isHint = outcome.Status == OutcomeStatus.NotLeader;
                owner.OnRefused(reference, new Refusal(
                    outcome.Status, isHint ? (int)outcome.Number : 0, isHint ? (ulong)outcome.Revision : 0));
            }
            else if (reference.TryEnd())
            {
                reference.Operation.Complete(in outcome);
            }

            reply.Reference = default;
        }
    }

    /// <summary>
    /// Parses the replies of a frame. Checks them all before the first is delivered, so that a malformed frame ends the
    /// stream without side effects.
    /// </summary>
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
            if (length > body.Length - at - Frame.ReplyHeaderBytes
                || !Outcome.TryRead(body.Slice(at + Frame.ReplyHeaderBytes, (int)length), out Outcome outcome))
            {
                throw new InvalidDataException("a reply is malformed");
            }

            _replies[i] = new ReceivedReply
            {
                Number = BinaryPrimitives.ReadUInt32LittleEndian(body[at..]),
                Offset = at + Frame.ReplyHeaderBytes,
                Length = (int)length,
                IsRefusal = OutcomeStatuses.RetryOf(outcome.Status) != RetryRule.Ends
                    || (outcome.Status == OutcomeStatus.Unauthenticated && owner.RenewsCredentials),
                IsUnknown = outcome.Status == OutcomeStatus.Unknown,
            };
            at += Frame.ReplyHeaderBytes + (int)length;
        }

        return at == body.Length
            ? _replies.AsSpan(0, count)
            : throw new InvalidDataException("a frame of replies is longer than its count says");
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

/// <summary>One reply of a received frame. A value inside the reader's array.</summary>
internal struct ReceivedReply
{
    public OperationRef Reference;
    public uint Number;
    public int Offset;
    public int Length;

    /// <summary>
    /// The operation is sent again: this attempt did not happen, or its session number makes a second one harmless.
    /// </summary>
    public bool IsRefusal;

    /// <summary>It is unknown whether this attempt happened.</summary>
    public bool IsUnknown;
}

/// <summary>
/// Splits the bytes of a stream into frames. Owned by the reader of one <see cref="NodeStream"/> and used by it alone.
/// A frame's payload is valid until the next call of <see cref="Space"/>.
/// </summary>
internal sealed class FrameReader : IDisposable
{
    private const int OrdinaryBytes = 128 * 1024;

    private byte[] _buffer = BufferArrays.Rent(OrdinaryBytes);
    private int _start;
    private int _end;

    /// <summary>The memory for the next bytes, with room for the rest of a frame that has begun.</summary>
    public Memory<byte> Space()
    {
        int held = _end - _start;
        int wanted = Math.Max(MissingBytes(), 1);
        if (_start > 0 && (held == 0 || _buffer.Length - _end < Math.Max(wanted, OrdinaryBytes / 2)))
        {
            _buffer.AsSpan(_start, held).CopyTo(_buffer);
            _start = 0;
            _end = held;
        }

        if (_buffer.Length - _end < wanted)
        {
            Replace(Math.Max(held + wanted, OrdinaryBytes));
        }
        else if (held == 0 && _buffer.Length > 8 * OrdinaryBytes)
        {
            Replace(OrdinaryBytes);
        }

        return _buffer.AsMemory(_end);
    }

    /// <summary>Marks bytes of the space as written.</summary>
    public void Advance(int count) => _end += count;

    /// <summary>Takes the next complete frame.</summary>
    /// <exception cref="InvalidDataException">The bytes are not a frame of this protocol.</exception>
    public bool TryTake(out ReadOnlySpan<byte> payload)
    {
        payload = default;
        if (_end - _start < Frame.GrpcPrefixBytes || MissingBytes() > 0)
        {
            return false;
        }

        int length = BodyBytes();
        if (!Frame.TryGetPayload(_buffer.AsSpan(_start + Frame.GrpcPrefixBytes, length), out payload))
        {
            throw new InvalidDataException("a message is not a frame");
        }

        _start += Frame.GrpcPrefixBytes + length;
        return true;
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        byte[] buffer = _buffer;
        _buffer = [];
        _start = 0;
        _end = 0;
        if (buffer.Length > 0)
        {
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>How many bytes of the first frame are missing.</summary>
    private int MissingBytes()
    {
        int held = _end - _start;
        return held < Frame.GrpcPrefixBytes ? Frame.GrpcPrefixBytes - held : Frame.GrpcPrefixBytes + BodyBytes() - held;
    }

    private int BodyBytes()
    {
        ReadOnlySpan<byte> prefix = _buffer.AsSpan(_start, Frame.GrpcPrefixBytes);
        uint length = BinaryPrimitives.ReadUInt32BigEndian(prefix[1..]);
        if (prefix[0] != 0)
        {
            throw new InvalidDataException("a message is compressed, which frames must not be");
        }

        return length <= Limits.FrameBytesMax
            ? (int)length
            : throw new InvalidDataException(
                FormattableString.Invariant($"a frame is {length:N0} bytes; the limit is {Limits.FrameBytesMax:N0}"));
    }

    private void Replace(int capacity)
    {
        byte[] other = BufferArrays.Rent(capacity);
        int held = _end - _start;
        _buffer.AsSpan(_start, held).CopyTo(other);
        BufferArrays.Return(_buffer);
        _buffer = other;
        _start = 0;
        _end = held;
    }
}
