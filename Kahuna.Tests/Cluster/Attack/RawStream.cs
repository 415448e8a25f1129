using System.Buffers.Binary;
using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// A stream that sends what it likes and reads when it likes. One writer and one reader at a time; owned by an
/// attacker.
/// </summary>
internal sealed class RawStream(IFrameChannel channel, IFrameStream stream) : IAsyncDisposable
{
    private readonly FrameReader _reader = new();
    private ByteBuffer _frame = ByteBuffer.Rent();
    private uint _number;
    private int _count;

    /// <summary>Replies that were read.</summary>
    public long Replies { get; private set; }

    /// <summary>Replies that say that something was done or found.</summary>
    public long Done { get; private set; }

    /// <summary>Replies that refuse a request because its caller has too much of something.</summary>
    public long Refused { get; private set; }

    /// <summary>Requests that were sent.</summary>
    public long Requests { get; private set; }

    public async Task GreetAsync()
    {
        Frame.Begin(_frame, FrameKind.Hello, Limits.WireVersion);
        Frame.End(_frame, 0);
        await stream.WriteAsync(_frame.WrittenMemory);
        Begin();
    }

    /// <summary>Adds a command to the frame that is sent next.</summary>
    public void Add(scoped in Command command)
    {
        Frame.AppendRequest(_frame, ++_number, 0, in command);
        _count++;
    }

    public async Task SendAsync()
    {
        Frame.End(_frame, _count);
        await stream.WriteAsync(_frame.WrittenMemory);
        Requests += _count;
        Begin();
    }

    /// <summary>Bytes that are no frame.</summary>
    public ValueTask SendAsync(ReadOnlyMemory<byte> bytes) => stream.WriteAsync(bytes);

    /// <summary>Reads until everything sent is answered.</summary>
    /// <exception cref="IOException">The stream has ended before that.</exception>
    public async Task ReadAllAsync()
    {
        while (Replies < Requests)
        {
            int count = await stream.ReadAsync(_reader.Space());
            if (count == 0)
            {
                throw new IOException("the node has ended the stream");
            }

            _reader.Advance(count);
            Count();
        }
    }

    public async ValueTask DisposeAsync()
    {
        stream.Abort();
        await stream.DisposeAsync();
        await channel.DisposeAsync();
        _reader.Dispose();
        _frame.Return();
    }

    private void Begin()
    {
        _frame.Return();
        _frame = ByteBuffer.Rent();
        Frame.Begin(_frame, FrameKind.Requests);
        _count = 0;
    }

    private void Count()
    {
        while (_reader.TryTake(out ReadOnlySpan<byte> payload))
        {
            if (Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count) && kind == FrameKind.Replies)
            {
                Replies += count;
                Check(payload[Frame.HeaderBytes..], count);
            }
        }
    }

    /// <summary>
    /// Counts what was done and what was refused. An attack whose commands are malformed attacks nothing.
    /// </summary>
    private void Check(ReadOnlySpan<byte> replies, int count)
    {
        for (; count > 0; count--)
        {
            int length = BinaryPrimitives.ReadInt32LittleEndian(replies[sizeof(int)..]);
            OutcomeStatus status = Outcome.TryRead(replies.Slice(Frame.ReplyHeaderBytes, length), out Outcome outcome)
                ? outcome.Status
                : OutcomeStatus.Unset;
            Refused += status is OutcomeStatus.Busy or OutcomeStatus.SessionsFull ? 1 : 0;
            if (status is OutcomeStatus.InvalidArgument or OutcomeStatus.Unimplemented or OutcomeStatus.NumberReused)
            {
                throw new InvalidOperationException($"the nodes call this attack's commands {status}");
            }

            Done += status is OutcomeStatus.Applied or OutcomeStatus.Found ? 1 : 0;

            replies = replies[(Frame.ReplyHeaderBytes + length)..];
        }
    }
}
