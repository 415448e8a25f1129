using System.Buffers;
using System.IO.Pipelines;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// A call as two runs of bytes, for handlers that frame by themselves. Owned by the call's handler; one reader and one
/// writer at a time, until the handler's task completes.
/// </summary>
internal sealed class RawGrpcStream(CallContext call)
{
    /// <summary>Messages of the caller, each with its five-byte prefix; it completes when the caller has sent the last one and fails when the stream is lost.</summary>
    public PipeReader Input => call.Http.Request.BodyReader;

    /// <summary>Takes whole messages with their five-byte prefix; <see cref="FlushAsync"/> sends them. Not to be completed by the handler.</summary>
    public PipeWriter Output => call.Http.Response.BodyWriter;

    /// <summary>
    /// The reader's wait for a message: it calls <see cref="MessageWait.Begin"/> before it reads on, and <see cref="MessageWait.End"/> when it has one. A wait that takes too long
    /// ends the call: the read of <see cref="Input"/> is cancelled.
    /// </summary>
    public MessageWait Wait => call.Requests.Wait;

    /// <summary>What the stream's complete requests take up.</summary>
    public RequestHold Hold => call.Requests.Hold;

    /// <summary>Cancelled when the call is over.</summary>
    public CancellationToken Ended => call.CancellationToken;

    /// <summary>Sends what was written. A caller that takes nothing for <see cref="GrpcServerOptions.ReplyPatience"/> loses the call.</summary>
    public ValueTask<FlushResult> FlushAsync() => call.FlushAsync(CancellationToken.None);

    /// <summary>Sends the response's headers, on which the caller of a stream waits. To be called before anything is written to <see cref="Output"/>.</summary>
    public async ValueTask FlushHeadersAsync()
    {
        call.BeginResponse();
        await Output.FlushAsync(call.CancellationToken);
    }

    /// <summary>Cuts the next whole message off the front of <paramref name="buffer"/>, without its prefix. False when it is not complete yet.</summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: over the limit; UNIMPLEMENTED: compressed; INTERNAL: no prefix.</exception>
    public static bool TryReadMessage(ref ReadOnlySequence<byte> buffer, int maxBytes, out ReadOnlySequence<byte> message)
    {
        bool found = GrpcFraming.TryRead(ref buffer, maxBytes, out bool compressed, out message);
        return found && compressed
            ? throw new GrpcException(GrpcStatusCode.Unimplemented, "This stream takes no compressed messages; send them without grpc-encoding.")
            : found;
    }
}
