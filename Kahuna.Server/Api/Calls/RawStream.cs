using System.Buffers;
using System.IO.Pipelines;
using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// A call as two runs of bytes, for handlers that frame by themselves. Owned by the call's handler; one reader and one
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

    /// <summary>Messages of the caller, each with its five-byte prefix; it completes when the caller has sent the last one and fails when the stream is lost.</summary>
    public PipeReader Input => _call.Body.Inner;

    /// <summary>Takes whole messages with their five-byte prefix; <see cref="FlushAsync"/> sends them. Not to be completed by the handler.</summary>
    public PipeWriter Output => _call.Http.Response.BodyWriter;

    /// <summary>
    /// The reader's wait for a message: it calls <see cref="MessageWait.Begin"/> before it reads on, and <see cref="MessageWait.End"/> when it has one. A wait that takes too long
    /// ends the call: the read of <see cref="Input"/> is cancelled.
    /// </summary>
    public MessageWait Wait => _call.Body.Wait;

    /// <summary>What the stream's complete requests take up.</summary>
    public RequestHold Hold => _call.Body.Hold;

    /// <summary>Cancelled when the call is over.</summary>
    public CancellationToken Ended => _context.CancellationToken;

    /// <summary>Sends what was written. A caller that takes nothing for <see cref="CallLimits.ReplyPatience"/> loses the call.</summary>
    public ValueTask<FlushResult> FlushAsync() => _call.FlushAsync();

    /// <summary>Sends the response's headers, on which the caller of a stream waits. To be called before anything is written to <see cref="Output"/>.</summary>
    public Task FlushHeadersAsync() => _context.WriteResponseHeadersAsync(Metadata.Empty);

    /// <summary>Cuts the next whole message off the front of <paramref name="buffer"/>, without its prefix. False when it is not complete yet.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: over the limit; UNIMPLEMENTED: compressed; INTERNAL: no prefix.</exception>
    public static bool TryReadMessage(ref ReadOnlySequence<byte> buffer, int maxBytes, out ReadOnlySequence<byte> message)
    {
        bool found = MessageFraming.TryRead(ref buffer, maxBytes, out bool compressed, out message);
        return found && compressed
            ? throw new RpcException(new Status(StatusCode.Unimplemented, "This stream takes no compressed messages; send them without grpc-encoding."))
            : found;
    }
}
