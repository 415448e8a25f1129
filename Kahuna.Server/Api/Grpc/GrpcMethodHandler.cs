using Google.Protobuf;

namespace Kahuna.Server.Api.Grpc;

/// <summary>Runs the calls of one bound method. Made at start-up; any thread.</summary>
internal abstract class GrpcMethodHandler
{
    /// <summary>The call has no end of its own: it is ended when the server stops, and its request may take for ever.</summary>
    public virtual bool RequestStreams => false;

    /// <summary>The reply is a stream, which is ended when the server stops.</summary>
    public virtual bool ReplyStreams => false;

    /// <summary>Reads the request, runs the handler, writes the reply. What it throws becomes the status.</summary>
    public abstract Task InvokeAsync(CallContext call);
}

/// <summary>One request, one reply.</summary>
internal sealed class UnaryHandler<TRequest, TReply>(MessageParser<TRequest> parser, Func<TRequest, CallContext, Task<TReply>> handler) : GrpcMethodHandler
    where TRequest : class, IMessage<TRequest>
    where TReply : class, IMessage<TReply>
{
    /// <inheritdoc/>
    public override async Task InvokeAsync(CallContext call)
    {
        TRequest request = await call.Requests.ReadOnlyAsync(parser);
        call.BeginWork();
        TReply reply = await handler(request, call);
        await call.WriteOnlyReplyAsync(reply);
    }
}

/// <summary>One request, many replies.</summary>
internal sealed class ServerStreamingHandler<TRequest, TReply>(MessageParser<TRequest> parser, Func<TRequest, GrpcStreamWriter<TReply>, CallContext, Task> handler) : GrpcMethodHandler
    where TRequest : class, IMessage<TRequest>
    where TReply : class, IMessage<TReply>
{
    /// <inheritdoc/>
    public override bool ReplyStreams => true;

    /// <inheritdoc/>
    public override async Task InvokeAsync(CallContext call)
    {
        TRequest request = await call.Requests.ReadOnlyAsync(parser);
        await handler(request, new GrpcStreamWriter<TReply>(call), call);
    }
}

/// <summary>Many requests, one reply.</summary>
internal sealed class ClientStreamingHandler<TRequest, TReply>(MessageParser<TRequest> parser, Func<GrpcStreamReader<TRequest>, CallContext, Task<TReply>> handler) : GrpcMethodHandler
    where TRequest : class, IMessage<TRequest>
    where TReply : class, IMessage<TReply>
{
    /// <inheritdoc/>
    public override bool RequestStreams => true;

    /// <inheritdoc/>
    public override async Task InvokeAsync(CallContext call)
    {
        TReply reply = await handler(new GrpcStreamReader<TRequest>(call, parser), call);
        await call.WriteOnlyReplyAsync(reply);
    }
}

/// <summary>Many requests, many replies.</summary>
internal sealed class DuplexHandler<TRequest, TReply>(MessageParser<TRequest> parser, Func<GrpcStreamReader<TRequest>, GrpcStreamWriter<TReply>, CallContext, Task> handler) : GrpcMethodHandler
    where TRequest : class, IMessage<TRequest>
    where TReply : class, IMessage<TReply>
{
    /// <inheritdoc/>
    public override bool RequestStreams => true;

    /// <inheritdoc/>
    public override bool ReplyStreams => true;

    /// <inheritdoc/>
    public override Task InvokeAsync(CallContext call) =>
        handler(new GrpcStreamReader<TRequest>(call, parser), new GrpcStreamWriter<TReply>(call), call);
}

/// <summary>Many requests, many replies, as bytes.</summary>
internal sealed class RawDuplexHandler(Func<RawGrpcStream, CallContext, Task> handler) : GrpcMethodHandler
{
    /// <inheritdoc/>
    public override bool RequestStreams => true;

    /// <inheritdoc/>
    public override bool ReplyStreams => true;

    /// <inheritdoc/>
    public override async Task InvokeAsync(CallContext call)
    {
        call.TakeOutput();
        try
        {
            await handler(new RawGrpcStream(call), call);
        }
        finally
        {
            call.GiveOutputBack();
        }
    }
}
