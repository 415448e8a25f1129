using System.Buffers.Binary;
using System.Threading.Tasks.Sources;
using Google.Protobuf;
using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Protos;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Tests.Client;

/// <summary>
/// A node that answers inside of the client's write, on the same thread and without an allocation, so that what one
/// operation costs the client can be counted. Owned by one test; one caller at a time.
/// </summary>
internal sealed class InstantNode : IFrameChannel, IFrameStream, IValueTaskSource<int>
{
    private static readonly Uri s_endpoint = new("https://instant:1");

    private readonly byte[] _replies = new byte[1 << 20];
    private ManualResetValueTaskSourceCore<int> _read;
    private Memory<byte> _target;
    private int _length;
    private int _given;
    private volatile bool _isReading;
    private bool _isEnded;

    public static Uri Endpoint => s_endpoint;

    /// <summary>Operations that were received.</summary>
    public int Requests;

    /// <summary>The client's reader waits.</summary>
    public bool IsReading => _isReading;

    /// <summary>The status of every answer.</summary>
    public OutcomeStatus Status { get; set; } = OutcomeStatus.Applied;

    /// <summary>The value of every answer.</summary>
    public byte[] Value { get; set; } = [];

    /// <inheritdoc/>
    public ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct) => new(this);

    /// <inheritdoc/>
    public ValueTask WriteAsync(ReadOnlyMemory<byte> messages)
    {
        Frame.TryGetPayload(messages.Span[Frame.GrpcPrefixBytes..], out ReadOnlySpan<byte> payload);
        ByteBuffer frame = ByteBuffer.Rent();
        Interlocked.Add(ref Requests, Answer(payload, frame, new Outcome(Status, 1, -1)
        {
            HasValue = Value.Length > 0,
            Value = Value,
        }));
        frame.Written.CopyTo(_replies.AsSpan(_length));
        _length += frame.Length;
        frame.Return();
        Give();
        return ValueTask.CompletedTask;
    }

    /// <summary>Appends what a node answers to a frame: to a greeting, or the same to all of its requests.</summary>
    /// <returns>Requests in the frame.</returns>
    public static int Answer(ReadOnlySpan<byte> payload, ByteBuffer replies, scoped in Outcome outcome)
    {
        Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count);
        if (kind == FrameKind.Hello)
        {
            Frame.Begin(replies, FrameKind.Hello, Limits.WireVersion);
            Frame.End(replies, 0);
            DescribeClusterResponse map = new() { ClusterId = "instant", NodeId = 1, ServerVersion = "1" };
            map.Nodes.Add(new Node { Id = 1, Endpoint = s_endpoint.ToString() });
            map.Partitions.Add(new PartitionLeader { LeaderNodeId = 1, Term = 1 });
            ByteBuffer frame = ByteBuffer.Rent();
            Frame.Begin(frame, FrameKind.Map);
            frame.Append(map.ToByteArray());
            Frame.End(frame, 1);
            replies.Append(frame.Written);
            frame.Return();
            return 0;
        }

        ByteBuffer answers = ByteBuffer.Rent();
        Frame.Begin(answers, FrameKind.Replies);
        int at = Frame.HeaderBytes;
        for (int i = 0; i < count; i++)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(payload[at..]);
            at += Frame.RequestHeaderBytes + BinaryPrimitives.ReadInt32LittleEndian(payload[(at + 8)..]);
            Frame.AppendReply(answers, number, outcome);
        }

        Frame.End(answers, count);
        replies.Append(answers.Written);
        answers.Return();
        return count;
    }

    /// <inheritdoc/>
    public ValueTask<int> ReadAsync(Memory<byte> buffer)
    {
        if (_isEnded)
        {
            return new ValueTask<int>(0);
        }

        if (_length > _given)
        {
            return new ValueTask<int>(CopyTo(buffer));
        }

        _target = buffer;
        _read.Reset();
        short version = _read.Version;
        _isReading = true;
        return new ValueTask<int>(this, version);
    }

    /// <inheritdoc/>
    public ValueTask<string?> EndReasonAsync() => new((string?)null);

    /// <inheritdoc/>
    public void Abort()
    {
        _isEnded = true;
        if (_isReading)
        {
            _isReading = false;
            _read.SetResult(0);
        }
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => ValueTask.CompletedTask;

    /// <inheritdoc/>
    int IValueTaskSource<int>.GetResult(short token) => _read.GetResult(token);

    /// <inheritdoc/>
    ValueTaskSourceStatus IValueTaskSource<int>.GetStatus(short token) => _read.GetStatus(token);

    /// <inheritdoc/>
    void IValueTaskSource<int>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _read.OnCompleted(continuation, state, token, flags);

    private void Give()
    {
        if (_isReading)
        {
            _isReading = false;
            _read.SetResult(CopyTo(_target));
        }
    }

    private int CopyTo(Memory<byte> buffer)
    {
        int count = Math.Min(buffer.Length, _length - _given);
        _replies.AsSpan(_given, count).CopyTo(buffer.Span);
        _given += count;
        if (_given == _length)
        {
            _given = 0;
            _length = 0;
        }

        return count;
    }
}
