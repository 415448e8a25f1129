using Google.Protobuf;

namespace Kahuna.Server.Api.Grpc;

/// <summary>The replies of a call that has many. Owned by the call's handler; one writer at a time.</summary>
internal sealed class GrpcStreamWriter<TReply>(CallContext call)
    where TReply : class, IMessage<TReply>
{
    /// <summary>Sends a reply and waits while the caller does not read.</summary>
    /// <exception cref="OperationCanceledException">The call is over: cancelled, past its deadline, or the server stops.</exception>
    public ValueTask WriteAsync(TReply reply) => call.WriteReplyAsync(reply);
}
