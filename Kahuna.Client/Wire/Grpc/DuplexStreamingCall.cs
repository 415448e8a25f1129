using System.Runtime.CompilerServices;
using Google.Protobuf;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>A call with many requests and many replies. Owned by its caller, who disposes it; one writer and one reader at a time.</summary>
internal sealed class DuplexStreamingCall<TRequest, TReply>(StreamedCall call, MessageParser<TReply> parser) : IDisposable
    where TRequest : IMessage
    where TReply : class, IMessage<TReply>
{
    /// <summary>Sends a message. It is back-pressured by the server's reading.</summary>
    /// <exception cref="GrpcException">The call has ended; with the server's status when there is one.</exception>
    public Task WriteAsync(TRequest message) => call.WriteAsync(message);

    /// <summary>No more requests; replies go on.</summary>
    public void CompleteRequests() => call.CompleteRequests();

    /// <summary>The next reply, or null after the last one of a call that ended with OK.</summary>
    /// <exception cref="GrpcException">The call ended with another status.</exception>
    public async Task<TReply?> ReadAsync()
    {
        await call.ResponseStarted.ConfigureAwait(false);
        return await call.Call.ReadReplyAsync(parser).ConfigureAwait(false);
    }

    /// <summary>All replies until the call ends with OK.</summary>
    public async IAsyncEnumerable<TReply> ReadAllAsync([EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        using CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static state => ((GrpcCall)state!).Abort(), call.Call);
        while (await ReadAsync().ConfigureAwait(false) is { } reply)
        {
            yield return reply;
        }
    }

    /// <summary>Ends the call; the server sees it cancelled unless it was over.</summary>
    public void Dispose() => call.Dispose();
}
