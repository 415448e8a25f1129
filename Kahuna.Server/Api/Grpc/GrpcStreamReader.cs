using System.Runtime.CompilerServices;
using Google.Protobuf;

namespace Kahuna.Server.Api.Grpc;

/// <summary>The requests of a call that has many. Owned by the call's handler; one reader at a time.</summary>
internal sealed class GrpcStreamReader<TRequest>(CallContext call, MessageParser<TRequest> parser)
    where TRequest : class, IMessage<TRequest>
{
    /// <summary>The next request, or null when the caller has sent the last one.</summary>
    /// <exception cref="OperationCanceledException">The call is over: cancelled, past its deadline, or the server stops.</exception>
    public ValueTask<TRequest?> ReadAsync() => call.Requests.ReadNextAsync(parser, call.CancellationToken);

    /// <summary>All requests until the caller has sent the last one.</summary>
    public async IAsyncEnumerable<TRequest> ReadAllAsync([EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        while (await ReadAsync() is { } request)
        {
            cancellationToken.ThrowIfCancellationRequested();
            yield return request;
        }
    }
}
