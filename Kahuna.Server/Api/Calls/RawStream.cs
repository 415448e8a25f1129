using System.Buffers;
using System.Buffers.Binary;
using System.Diagnostics;
using System.IO.Compression;
using System.IO.Pipelines;
using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// A call as two byte streams, for handlers with their own framing. Owned by the call's handler; one reader and one
/// writer at a time, until the handler's task completes.
/// </summary>
internal sealed class RawStream
{
    private readonly ServerCallContext _context;
    private readonly GuardedCall _call;

    public RawStream(ServerCallContext context)
    {
        _context = context;
        _call = GuardedCall.Of(context);
    }

    /// <summary>
    /// The caller's messages, each with its five-byte prefix. Completes after the last one; fails if the stream is
    /// lost.
    /// </summary>
    public PipeReader Input => _call.Body.Inner;

    /// <summary>
    /// Accepts whole messages with their five-byte prefix; <see cref="FlushAsync"/> sends them. The handler must not
    /// complete it.
    /// </summary>
    public PipeWriter Output => _call.Http.Response.BodyWriter;

    /// <summary>
    /// The message that is arriving. The reader calls <see cref="IncompleteMessage.Begin"/> before each read and
    /// <see cref="IncompleteMessage.End"/> when it has a message. A timeout ends the call and cancels the read of
    /// <see cref="Input"/>.
    /// </summary>
    public IncompleteMessage Incomplete => _call.Body.Incomplete;

    /// <summary>The memory of the stream's complete requests.</summary>
    public RequestReservation Reservation => _call.Body.Reservation;

    /// <summary>Cancelled when the call is over.</summary>
    public CancellationToken Ended => _context.CancellationToken;

    /// <summary>
    /// Sends what was written. The call is reset if the caller reads nothing for <see cref="CallLimits.ReplyTimeout"/>.
    /// </summary>
    public ValueTask<FlushResult> FlushAsync() => _call.FlushAsync();

    /// <summary>
    /// Sends the response headers, which the caller of a stream awaits. Call it before the first write to
    /// <see cref="Output"/>.
    /// </summary>
    public Task FlushHeadersAsync() => _context.WriteResponseHeadersAsync(Metadata.Empty);

    /// <summary>
    /// Takes the next whole message off the front of <paramref name="buffer"/>, without its prefix. False if it is
    /// incomplete.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: over the limit. UNIMPLEMENTED: compressed. INTERNAL:
    /// malformed prefix.</exception>
    public static bool TryReadMessage(
        ref ReadOnlySequence<byte> buffer, int maxBytes, out ReadOnlySequence<byte> message)
    {
        bool found = MessageFraming.TryRead(ref buffer, maxBytes, out bool compressed, out message);
        return found && compressed
            ? throw new RpcException(new Status(
                StatusCode.Unimplemented,
                "This stream does not accept compressed messages; send them without grpc-encoding."))
            : found;
    }
}

/// <summary>
/// The framing of messages in the body of a gRPC request: a flag (1: compressed), a 32-bit big-endian length, the
/// message. Pure; any thread.
/// </summary>
internal static class MessageFraming
{
    /// <summary>Bytes of flag and length.</summary>
    public const int PrefixBytes = 5;

    /// <summary>
    /// Takes the next whole message off the front of <paramref name="buffer"/>. False if it is incomplete.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the message exceeds the limit, according to its prefix.
    /// INTERNAL: the prefix is malformed.</exception>
    public static bool TryRead(
        ref ReadOnlySequence<byte> buffer, int maxBytes, out bool compressed, out ReadOnlySequence<byte> message)
    {
        compressed = false;
        message = default;
        if (buffer.Length < PrefixBytes)
        {
            return false;
        }

        Span<byte> copy = stackalloc byte[PrefixBytes];
        scoped ReadOnlySpan<byte> prefix = buffer.FirstSpan;
        if (prefix.Length < PrefixBytes)
        {
            buffer.Slice(0, PrefixBytes).CopyTo(copy);
            prefix = copy;
        }

        if (prefix[0] > 1)
        {
            throw new RpcException(new Status(
                StatusCode.Internal, $"A message begins with the flag {prefix[0]}; only 0 and 1 are defined."));
        }

        compressed = prefix[0] == 1;
        uint length = BinaryPrimitives.ReadUInt32BigEndian(prefix[1..]);
        if (length > (uint)maxBytes)
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted, $"A message of {length} bytes is over the limit of {maxBytes} bytes."));
        }

        if (buffer.Length - PrefixBytes < length)
        {
            return false;
        }

        message = buffer.Slice(PrefixBytes, length);
        buffer = buffer.Slice(message.End);
        return true;
    }

    /// <summary>
    /// Decompresses a gzip message and adds a prefix. Stops above <paramref name="maxBytes"/>, because a small message
    /// can expand to a huge one.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: it exceeds the limit. INTERNAL: it is not gzip.</exception>
    public static ReadOnlySequence<byte> Unpack(ReadOnlySequence<byte> packed, int maxBytes)
    {
        using MemoryStream source = new(packed.ToArray(), writable: false);
        using GZipStream gzip = new(source, CompressionMode.Decompress);
        using MemoryStream plain = new();
        plain.SetLength(PrefixBytes);
        plain.Position = PrefixBytes;
        byte[] piece = ArrayPool<byte>.Shared.Rent(16 << 10);
        try
        {
            int read;
            while ((read = gzip.Read(piece)) > 0)
            {
                plain.Write(piece, 0, read);
                if (plain.Length - PrefixBytes > maxBytes)
                {
                    throw new RpcException(new Status(
                        StatusCode.ResourceExhausted,
                        $"A compressed message unpacks to more than the limit of {maxBytes} bytes."));
                }
            }
        }
        catch (InvalidDataException)
        {
            throw new RpcException(new Status(StatusCode.Internal, "A message is marked as gzip but is not."));
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(piece);
        }

        BinaryPrimitives.WriteUInt32BigEndian(plain.GetBuffer().AsSpan(1), (uint)(plain.Length - PrefixBytes));
        return new ReadOnlySequence<byte>(plain.GetBuffer(), 0, (int)plain.Length);
    }
}

/// <summary>
/// The part of a message that has arrived: its bytes, which count against the budgets of connection and node, and how
/// long the rest is awaited. Owned by the reader of a call, one thread at a time; <see cref="TimeLeft"/> from any
/// thread.
/// </summary>
/// <param name="connection">The connection's budget; null: not counted.</param>
/// <param name="node">The node's budget.</param>
internal sealed class IncompleteMessage(RequestBudget? connection, RequestBudget node)
{
    private bool _greeted;
    private long _counted;
    private long _since;

    /// <summary>
    /// Begins to wait for the rest after <paramref name="bytes"/> of a message. Between messages, after its first one,
    /// a stream may be silent without limit.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection or the node has its maximum of incomplete
    /// requests.</exception>
    public void Begin(long bytes)
    {
        Count(bytes);
        if (bytes == 0 && _greeted)
        {
            Volatile.Write(ref _since, 0);
        }
        else if (_since == 0)
        {
            Volatile.Write(ref _since, Stopwatch.GetTimestamp());
        }
    }

    /// <summary>Stops the wait of a complete message that is not taken yet. Its bytes stay counted.</summary>
    public void StopTimer()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
    }

    /// <summary>Ends the wait and releases the bytes: the message was taken, or the call is over.</summary>
    public void End()
    {
        _greeted = true;
        Volatile.Write(ref _since, 0);
        Count(0);
    }

    /// <summary>
    /// Time until <paramref name="timeout"/> ends the wait, at least zero; null if no message is awaited.
    /// </summary>
    public TimeSpan? TimeLeft(TimeSpan timeout)
    {
        if (Volatile.Read(ref _since) is not (var since and > 0))
        {
            return null;
        }

        TimeSpan left = timeout - Stopwatch.GetElapsedTime(since);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    private void Count(long bytes)
    {
        long more = bytes - _counted;
        if (more == 0)
        {
            return;
        }

        _counted = bytes;
        bool hasConnection = connection?.Add(more) ?? true;
        bool hasNode = node.Add(more);
        if (more > 0 && bytes > RequestBudget.SmallBytes && !(hasConnection && hasNode))
        {
            string whose = hasConnection ? "node" : "connection";
            long limit = hasConnection ? node.BytesMax : connection!.BytesMax;
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The {whose} has {limit >> 20} MiB of incomplete requests, its limit; this one was not executed. "
                    + $"Complete the others first, or send smaller ones."));
        }
    }
}
