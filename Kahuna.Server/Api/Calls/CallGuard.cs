using System.Collections.Frozen;
using Google.Api;
using Google.Protobuf.Reflection;
using Grpc.AspNetCore.Server;
using Grpc.Core;
using Kahuna.Server.Api.Json;
using Microsoft.AspNetCore.Grpc.JsonTranscoding;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Runs before the gRPC package and after it: gives each call its <see cref="GuardedCall"/>, adds what errors say of the call's effect, and counts calls that their callers have reset.
/// Made at start-up; any thread.
/// </summary>
/// <param name="provider">The application's services, all of which live as long as it does: no call needs a scope of its own.</param>
/// <param name="limits">What a call may take.</param>
/// <param name="services">The services whose requests' text is checked.</param>
/// <param name="log">Receives what callers do not get to see.</param>
internal sealed class CallGuard(IServiceProvider provider, CallLimits limits, IEnumerable<ServiceDescriptor> services, ILogger log)
{
    private readonly FrozenDictionary<string, MessageDescriptor> _requests =
        services.SelectMany(static service => service.Methods).ToFrozenDictionary(static method => $"/{method.Service.FullName}/{method.Name}", static method => method.InputType);

    private readonly WholeProvider _provider = new(provider);

    /// <summary>Answers a request by what follows.</summary>
    public Task HandleAsync(HttpContext http, RequestDelegate next)
    {
        if (http.RequestAborted.IsCancellationRequested)
        {
            // It was reset before its turn came: nothing is begun, and no exception is paid for.
            CountReset(http);
            return Task.CompletedTask;
        }

        EndpointMetadataCollection? metadata = http.GetEndpoint()?.Metadata;
        if (metadata?.GetMetadata<GrpcJsonTranscodingMetadata>() is { } json)
        {
            return RunJsonAsync(http, json, next);
        }

        if (metadata?.GetMetadata<GrpcMethodMetadata>()?.Method is { } method)
        {
            GuardedCall call = new(http, limits, method.Type, _requests.GetValueOrDefault(method.FullName), log);
            return RunAsync(call, method.FullName, next);
        }

        if (IsGrpc(http.Request))
        {
            if (!HttpMethods.IsPost(http.Request.Method))
            {
                http.Response.StatusCode = StatusCodes.Status405MethodNotAllowed;
                http.Response.Headers.Allow = HttpMethods.Post;
                return Task.CompletedTask;
            }

            http.Response.OnStarting(static http => CompleteError((HttpContext)http, null), http);
        }

        return next(http);
    }

    private async Task RunAsync(GuardedCall call, string method, RequestDelegate next)
    {
        Unbound(call.Http);
        call.Http.Features.Set<IServiceProvidersFeature>(_provider);
        call.Open();
        call.Http.Response.OnStarting(static call => CompleteError(((GuardedCall)call).Http, (GuardedCall)call), call);
        try
        {
            Task work = next(call.Http);
            if (!work.IsCompleted)
            {
                call.Watch();
            }

            await work.ConfigureAwait(false);
            await call.SeeReplyAsync().ConfigureAwait(false);
            call.TellStop();
        }
        catch (Exception e) when (call.IsLost && e is IOException or OperationCanceledException)
        {
            // Nobody is there to hear of it.
        }
        finally
        {
            await call.CloseAsync().ConfigureAwait(false);
            Tell(call, method);
        }
    }

    private Task RunJsonAsync(HttpContext http, GrpcJsonTranscodingMetadata json, RequestDelegate next)
    {
        MethodDescriptor method = json.MethodDescriptor;
        GuardedCall call = new(http, limits, MethodType.Unary, method.InputType, log, isJson: true);
        return RunAsync(call, $"/{method.Service.FullName}/{method.Name}", _ => ReadJsonAsync(call, method, json.HttpRule, next));
    }

    /// <summary>Reads and checks the whole request, and has it carried out.</summary>
    private async Task ReadJsonAsync(GuardedCall call, MethodDescriptor method, HttpRule rule, RequestDelegate next)
    {
        HttpContext http = call.Http;
        try
        {
            call.ThrowIfRefused();
            byte[] body = await call.Body.ReadWholeAsync(JsonRequest.BytesMax(limits.MessageBytesMax), http.RequestAborted).ConfigureAwait(false);
            JsonRequest.Check(http.Request, body, method.InputType, rule);
            http.Request.Body = new MemoryStream(body, writable: false);
        }
        catch (Exception e) when (!call.IsLost)
        {
            await JsonError.WriteAsync(http.Response, call.Fail(e), begun: false).ConfigureAwait(false);
            return;
        }

        await next(http).ConfigureAwait(false);
    }

    private void Tell(GuardedCall call, string method)
    {
        if (call.IsLost)
        {
            CallLog.CallLost(log, method, call.Loss);
            CountReset(call.Http);
        }
        else if (call.Body.Fault is { } fault)
        {
            CallLog.RequestMalformed(log, $"{call.Http.Connection.RemoteIpAddress}", method, fault);
        }
    }

    /// <summary>Counts a call that its caller has reset, and closes the connection when those are too many. Calls of a lost connection count, too, which has no effect.</summary>
    private void CountReset(HttpContext http)
    {
        if (http.Features.Get<ConnectionShare>() is { } share && !share.TryReset())
        {
            CallLog.ConnectionClosed(log, $"{http.Connection.RemoteIpAddress}", ConnectionShare.Resets.Burst, ConnectionShare.Resets.PerSecond);
        }
    }

    /// <summary>An error of a call with one reply is in its headers, before they leave: adds what the call has done, unless its handler said so itself.</summary>
    private static Task CompleteError(HttpContext http, GuardedCall? call)
    {
        IHeaderDictionary headers = http.Response.Headers;
        if (call is { IsJson: true })
        {
            if (call.Failure is { } failure)
            {
                headers[OutcomeErrors.OutcomeTrailer] = JsonError.Outcome(failure, call.Begun);
            }

            return Task.CompletedTask;
        }

        if (headers.GrpcStatus is not [{ } status] || status == "0" || call is { Streams: true })
        {
            return Task.CompletedTask;
        }

        if (status == "12" && call is null && IsPlain(http.Request.Path))
        {
            headers.GrpcMessage = $"There is no method '{http.Request.Path}' on this server.";
        }

        bool begun = call is { Begun: true } && !http.Request.Path.StartsWithSegments("/grpc.health.v1.Health", StringComparison.Ordinal);
        if (status == "2" && call is { Begun: false })
        {
            // The package's parser failed, which says "unknown" and nothing else.
            call.Body.Fault = "it is no message of this method.";
            headers.GrpcStatus = "13";
            headers.GrpcMessage = "The request is no message of this method.";
        }

        if (!headers.ContainsKey(OutcomeErrors.OutcomeTrailer))
        {
            headers[OutcomeErrors.OutcomeTrailer] = begun ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen;
        }

        return Task.CompletedTask;
    }

    private static bool IsGrpc(HttpRequest request) => request.ContentType?.StartsWith("application/grpc", StringComparison.OrdinalIgnoreCase) ?? false;

    /// <summary>Text that is sent as it is: printable ASCII without the sign of an escape.</summary>
    private static bool IsPlain(string text) => !text.AsSpan().ContainsAnyExceptInRange(' ', '~') && !text.Contains('%', StringComparison.Ordinal);

    /// <summary>Takes off the limits that HTTP servers put on bodies: messages have a limit of their own, and a stream may be silent for hours.</summary>
    private static void Unbound(HttpContext http)
    {
        if (http.Features.Get<IHttpMaxRequestBodySizeFeature>() is { IsReadOnly: false } size)
        {
            size.MaxRequestBodySize = null;
        }

        if (http.Features.Get<IHttpMinRequestBodyDataRateFeature>() is { } rate)
        {
            rate.MinDataRate = null;
        }
    }

    /// <summary>In place of the web server's, which makes and disposes a scope for each call.</summary>
    private sealed class WholeProvider(IServiceProvider provider) : IServiceProvidersFeature
    {
        public IServiceProvider RequestServices { get; set; } = provider;
    }
}
