using Google.Protobuf;
using Grpc.Core;
using Grpc.Core.Interceptors;
using Kahuna.Server.Access;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Runs between the gRPC package and every handler: marks the call as begun, counts its reply, and maps exceptions to a
/// status. It does not see the bytes of an exchange. Stateless, any thread.
/// </summary>
internal sealed class CallInterceptor : Interceptor
{
    public override async Task<TResponse> UnaryServerHandler<TRequest, TResponse>(
        TRequest request, ServerCallContext context, UnaryServerMethod<TRequest, TResponse> continuation)
    {
        GuardedCall call = Open(context);
        call.Begin();
        try
        {
            TResponse reply = await continuation(request, context).ConfigureAwait(false);
            call.CountReply(((IMessage)reply).CalculateSize());
            return reply;
        }
        catch (Exception e) when (e is not RpcException || call.IsJson)
        {
            throw call.ToError(e);
        }
    }

    public override async Task<TResponse> ClientStreamingServerHandler<TRequest, TResponse>(
        IAsyncStreamReader<TRequest> requestStream,
        ServerCallContext context,
        ClientStreamingServerMethod<TRequest, TResponse> continuation)
    {
        GuardedCall call = Open(context);
        call.Begin();
        try
        {
            return await continuation(requestStream, context).ConfigureAwait(false);
        }
        catch (Exception e) when (e is not RpcException || call.IsJson)
        {
            throw call.ToError(e);
        }
    }

    public override async Task ServerStreamingServerHandler<TRequest, TResponse>(
        TRequest request,
        IServerStreamWriter<TResponse> responseStream,
        ServerCallContext context,
        ServerStreamingServerMethod<TRequest, TResponse> continuation)
    {
        GuardedCall call = Open(context);
        await StreamAsync(call, () =>
            continuation(request, new WatchedWriter<TResponse>(responseStream, call), context)).ConfigureAwait(false);
        if (call.IsStopping)
        {
            // A handler that returns when its token is cancelled would signal a complete stream.
            throw GuardedCall.Stopping();
        }
    }

    public override Task DuplexStreamingServerHandler<TRequest, TResponse>(
        IAsyncStreamReader<TRequest> requestStream,
        IServerStreamWriter<TResponse> responseStream,
        ServerCallContext context,
        DuplexStreamingServerMethod<TRequest, TResponse> continuation)
    {
        GuardedCall call = Open(context);
        return StreamAsync(
            call, () => continuation(requestStream, new WatchedWriter<TResponse>(responseStream, call), context));
    }

    /// <summary>The call's guard. Everything that the handler awaits knows who calls.</summary>
    private static GuardedCall Open(ServerCallContext context)
    {
        GuardedCall call = GuardedCall.Of(context);
        if (call.Http.Features.Get<Caller>() is { } caller)
        {
            CallerOfCall.Current = caller;
        }

        return call;
    }

    private static async Task StreamAsync(GuardedCall call, Func<Task> handler)
    {
        call.Begin();
        try
        {
            await handler().ConfigureAwait(false);
        }
        catch (Exception e) when (e is not RpcException || call.IsJson)
        {
            throw call.ToError(e);
        }
    }
}
