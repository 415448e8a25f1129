using Google.Protobuf;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>A call with many requests and one reply. Owned by its caller, who disposes it; one writer at a time.</summary>
internal sealed class ClientStreamingCall<TRequest, TReply>(StreamedCall call, MessageParser<TReply> parser) : IDisposable
    where TRequest : IMessage
    where TReply : class, IMessage<TReply>
{
    /// <summary>Sends a message. It is back-pressured by the server's reading.</summary>
    /// <exception cref="GrpcException">The call has ended; with the server's status when there is one.</exception>
    public Task WriteAsync(TRequest message) => call.WriteAsync(message);

    /// <summary>Ends the requests and waits for the reply.</summary>
    public async Task<TReply> CompleteAsync()
    {
        call.CompleteRequests();
        try
        {
            await call.ResponseStarted.ConfigureAwait(false);
            return await call.Call.ReadOnlyReplyAsync(parser).ConfigureAwait(false);
        }
        catch (Exception e) when (e is not GrpcException)
        {
            throw call.Call.Translate(e);
        }
    }

    /// <summary>Ends the call; the server sees it cancelled unless it was over.</summary>
    public void Dispose() => call.Dispose();
}
