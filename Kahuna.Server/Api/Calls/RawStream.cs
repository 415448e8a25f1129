using System.Buffers;
using System.Buffers.Binary;
using System.Diagnostics;
using System.IO.Compression;
using System.IO.Pipelines;
using Grpc.Core;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Sockets;

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
    /// <param name="header">A header besides those of the protocol; null: none.</param>
    public Task FlushHeadersAsync(Metadata.Entry? header = null) =>
        _context.WriteResponseHeadersAsync(header is null ? Metadata.Empty : [header]);

    /// <summary>
    /// Waits until bytes have left that go another way than <see cref="Output"/>. The call is reset if the caller reads
    /// nothing for <see cref="CallLimits.ReplyTimeout"/>.
    /// </summary>
    public async ValueTask AwaitFlushAsync(Task flush)
    {
        _call.BeginFlush();
        try
        {
            await flush.ConfigureAwait(false);
        }
        finally
        {
            _call.EndFlush();
        }
    }

    /// <summary>Ends a pending read of <see cref="Input"/> with a result that says so. Any thread.</summary>
    public void CancelRead()
    {
        try
        {
            Input.CancelPendingRead();
        }
        catch (IOException)
        {
            // The stream was aborted, so that the read has failed already.
        }
    }

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

/// <summary>
/// What carries the frames of a stream: its call, or its direct link. The one on which the first message comes does,
/// until the end. Owned by the stream; threading with each member.
/// </summary>
internal sealed class DirectCarrier
{
    private readonly Lock _lock = new();
    private readonly TaskCompletionSource _readerLeft = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly ManualResetEventSlim _released = new();
    private readonly CancellationTokenSource _end = new();
    private DirectConnection? _candidate;
    private volatile DirectConnection? _link;
    private bool _isDecided;
    private bool _isEnded;
    private Exception? _failure;

    /// <summary>The link, if it carries the stream. Any thread.</summary>
    public DirectConnection? Link => _link;

    /// <summary>Cancelled when the stream ends.</summary>
    public CancellationToken Ended => _end.Token;

    /// <summary>Why the link's reader, which has ended, ends the stream; null: it does not. Any thread.</summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    /// <summary>Whether messages are taken from there; the first one decides. Any thread.</summary>
    /// <param name="from">Where a message came from; null: the call.</param>
    public bool Carries(DirectConnection? from)
    {
        if (Volatile.Read(ref _isDecided))
        {
            return _link == from;
        }

        lock (_lock)
        {
            if (!_isDecided)
            {
                _link = from;
                Volatile.Write(ref _isDecided, true);
            }

            return _link == from;
        }
    }

    /// <summary>
    /// Reads from a link, on its thread, and returns when the stream no longer uses it. Called once at most.
    /// </summary>
    /// <param name="link">The link.</param>
    /// <param name="read">Reads until the link ends.</param>
    /// <param name="call">The stream's call, which ends with the link.</param>
    public void Run(DirectConnection link, Action read, RawStream call)
    {
        lock (_lock)
        {
            if (_isEnded)
            {
                return;
            }

            _candidate = link;
        }

        Exception failure = new IOException("The client has closed its direct link.");
        try
        {
            read();
        }
        catch (Exception error)
        {
            failure = error;
        }

        bool isCarrying = _link == link;
        if (isCarrying)
        {
            Volatile.Write(ref _failure, failure);

            // Inside of the call: it waits for the reader to leave.
            call.CancelRead();
        }

        _readerLeft.TrySetResult();
        if (isCarrying)
        {
            _released.Wait();
        }
    }

    /// <summary>The stream ends: closes the link, and completes when nobody reads from it.</summary>
    public Task EndAsync()
    {
        lock (_lock)
        {
            _isEnded = true;
            _end.Cancel();
            _candidate?.Close();
            return _candidate is null ? Task.CompletedTask : _readerLeft.Task;
        }
    }

    /// <summary>Nobody writes to the link any longer.</summary>
    public void Release() => _released.Set();
}

/// <summary>
/// Reads the messages of a stream from its direct link, on the link's thread, with the limits of the stream's call.
/// Owned by the stream; runs once.
/// </summary>
/// <param name="link">The link.</param>
/// <param name="call">The stream's call: its limits, and how long it lives.</param>
/// <param name="take">Takes a whole message in. Until it has completed nothing is read. Throws if it is the first one,
/// and the link does not carry the stream.</param>
/// <param name="ended">Cancelled when the stream ends.</param>
internal sealed class DirectReader(
    DirectConnection link, RawStream call, Func<ReadOnlySequence<byte>, ValueTask> take, CancellationToken ended)
{
    /// <summary>Two TLS records. It grows with the bytes of a larger message that have arrived.</summary>
    private const int BufferBytes = 32 * 1024;

    /// <summary>Fewest free bytes for a read.</summary>
    private const int ReadBytesMin = 8 * 1024;

    /// <summary>The first message is a Hello; until then the call's own reader uses the call's limits.</summary>
    private const int FirstBytesMax = ReadBytesMin;

    private byte[] _buffer = BufferArrays.Rent(BufferBytes);
    private int _start;
    private int _end;
    private bool _isCarrying;

    /// <summary>Reads until the link or the call ends.</summary>
    /// <exception cref="RpcException">A message is malformed or over a limit.</exception>
    /// <exception cref="IOException">The link is lost.</exception>
    /// <exception cref="OperationCanceledException">The call has ended.</exception>
    public void Run()
    {
        try
        {
            while (link.Read(_buffer.AsSpan(_end)) is var count and > 0)
            {
                _end += count;
                TakeMessages();
                MakeRoom();
            }
        }
        finally
        {
            if (_isCarrying)
            {
                call.Incomplete.End();
            }

            BufferArrays.Return(_buffer);
        }
    }

    private void TakeMessages()
    {
        ReadOnlySequence<byte> rest = new(_buffer, _start, _end - _start);
        while (RawStream.TryReadMessage(
            ref rest, _isCarrying ? Limits.FrameBytesMax : FirstBytesMax, out ReadOnlySequence<byte> message))
        {
            if (_isCarrying && !call.Reservation.Fits(message.Length))
            {
                // The bytes of a message that waits for budget still count as incomplete.
                call.Incomplete.StopTimer();
                call.Reservation.WaitUntilFitsAsync(message.Length, ended).GetAwaiter().GetResult();
            }

            ValueTask taken = take(message);
            _isCarrying = true;
            call.Incomplete.End();
            if (!taken.IsCompletedSuccessfully)
            {
                taken.AsTask().GetAwaiter().GetResult();
            }
        }

        _start = _end - (int)rest.Length;
        if (_isCarrying)
        {
            call.Incomplete.Begin(rest.Length);
        }
    }

    private void MakeRoom()
    {
        int rest = _end - _start;
        if (rest == 0 && _buffer.Length > 4 * BufferBytes)
        {
            // A large message has passed.
            Replace(BufferBytes);
        }
        else if (_buffer.Length - rest < ReadBytesMin)
        {
            Replace(2 * _buffer.Length);
        }
        else if (rest == 0 || _buffer.Length - _end < ReadBytesMin)
        {
            _buffer.AsSpan(_start, rest).CopyTo(_buffer);
            (_start, _end) = (0, rest);
        }
    }

    private void Replace(int bytes)
    {
        byte[] other = BufferArrays.Rent(bytes);
        int rest = _end - _start;
        _buffer.AsSpan(_start, rest).CopyTo(other);
        BufferArrays.Return(_buffer);
        (_buffer, _start, _end) = (other, 0, rest);
    }
}

/// <summary>What gives streams their direct links. Immutable; any thread.</summary>
/// <param name="Offer">Offers a stream a link: what serves the stream over it, until one of them ends. Returns the
/// ticket for the client; null when there is no place.</param>
/// <param name="Withdraw">The stream with this ticket needs no link any longer.</param>
internal sealed record LinkOffers(Func<Action<DirectConnection>, string?> Offer, Action<string> Withdraw);
