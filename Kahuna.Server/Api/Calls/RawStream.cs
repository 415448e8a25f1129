using System.Buffers;
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
