using System.Collections.Frozen;
using Google.Api;
using Google.Protobuf.Reflection;
using Grpc.AspNetCore.Server;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Json;
using Microsoft.AspNetCore.Grpc.JsonTranscoding;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The middleware around the gRPC package: creates the <see cref="GuardedCall"/> of each call, adds the outcome trailer
/// to errors, and counts calls that clients reset. Created at start-up; any thread.
/// </summary>
/// <param name="provider">The application's services. All are singletons, so that no call needs a scope.</param>
/// <param name="limits">The limits of a call.</param>
/// <param name="services">Services whose requests are checked for valid text.</param>
/// <param name="log">Receives what callers do not see.</param>
internal sealed class CallGuard(
    IServiceProvider provider, CallLimits limits, IEnumerable<ServiceDescriptor> services, ILogger log)
{
    private readonly FrozenDictionary<string, MessageDescriptor> _requests =
        services.SelectMany(static service => service.Methods).ToFrozenDictionary(
            static method => $"/{method.Service.FullName}/{method.Name}", static method => method.InputType);

    private readonly SharedProvider _provider = new(provider);

    /// <summary>Handles a request and passes it on to the next middleware.</summary>
    public Task HandleAsync(HttpContext http, RequestDelegate next)
    {
        if (http.RequestAborted.IsCancellationRequested)
        {
            // The client reset it before it was dispatched: nothing is started, and no exception is thrown.
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
        RemoveBodyLimits(call.Http);
        call.Http.Features.Set<IServiceProvidersFeature>(_provider);
        call.Open();
        call.Http.Response.OnStarting(static call => CompleteError(((GuardedCall)call).Http, (GuardedCall)call), call);
        try
        {
            Task work = next(call.Http);
            if (!work.IsCompleted)
            {
                call.StartTimer();
            }

            await work.ConfigureAwait(false);
            await call.AwaitReplyAsync().ConfigureAwait(false);
            call.SetStopStatus();
        }
        catch (Exception e) when (call.IsLost && e is IOException or OperationCanceledException)
        {
            // The caller is gone.
        }
        finally
        {
            await call.CloseAsync().ConfigureAwait(false);
            LogEnd(call, method);
        }
    }

    private Task RunJsonAsync(HttpContext http, GrpcJsonTranscodingMetadata json, RequestDelegate next)
    {
        MethodDescriptor method = json.MethodDescriptor;
        GuardedCall call = new(http, limits, MethodType.Unary, method.InputType, log, isJson: true);
        return RunAsync(
            call, $"/{method.Service.FullName}/{method.Name}", _ => ReadJsonAsync(call, method, json.HttpRule, next));
    }

    /// <summary>Reads and checks the whole request, then dispatches it.</summary>
    private async Task ReadJsonAsync(GuardedCall call, MethodDescriptor method, HttpRule rule, RequestDelegate next)
    {
        HttpContext http = call.Http;
        try
        {
            call.ThrowIfRefused();
            byte[] body = await call.Body.ReadWholeAsync(
                JsonRequest.BytesMax(limits.MessageBytesMax), http.RequestAborted).ConfigureAwait(false);
            JsonRequest.Check(http.Request, body, method.InputType, rule);
            http.Request.Body = new MemoryStream(body, writable: false);
        }
        catch (Exception e) when (!call.IsLost)
        {
            await JsonError.WriteAsync(http.Response, call.ToError(e), begun: false).ConfigureAwait(false);
            return;
        }

        await next(http).ConfigureAwait(false);
    }

    private void LogEnd(GuardedCall call, string method)
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

    /// <summary>
    /// Counts a call that the client reset, and closes the connection above the limit. Calls of a lost connection count
    /// as well, without effect.
    /// </summary>
    private void CountReset(HttpContext http)
    {
        if (http.Features.Get<ConnectionQuota>() is { } quota && !quota.TryReset())
        {
            CallLog.ConnectionClosed(
                log,
                $"{http.Connection.RemoteIpAddress}",
                ConnectionQuota.Resets.Burst,
                ConnectionQuota.Resets.PerSecond);
        }
    }

    /// <summary>
    /// Adds the outcome trailer to an error before the headers are sent, unless the handler has set it. Errors of calls
    /// with one reply are in the headers.
    /// </summary>
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

        bool begun = call is { Begun: true }
            && !http.Request.Path.StartsWithSegments("/grpc.health.v1.Health", StringComparison.Ordinal);
        if (status == "2" && call is { Begun: false })
        {
            // The package failed to parse the request, and would report UNKNOWN without a reason.
            call.Body.Fault = "it is not a valid message of this method.";
            headers.GrpcStatus = "13";
            headers.GrpcMessage = "The request is not a valid message of this method.";
        }

        if (!headers.ContainsKey(OutcomeErrors.OutcomeTrailer))
        {
            headers[OutcomeErrors.OutcomeTrailer] = begun ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen;
        }

        return Task.CompletedTask;
    }

    private static bool IsGrpc(HttpRequest request) =>
        request.ContentType?.StartsWith("application/grpc", StringComparison.OrdinalIgnoreCase) ?? false;

    /// <summary>True for text that needs no escaping: printable ASCII without '%'.</summary>
    private static bool IsPlain(string text) =>
        !text.AsSpan().ContainsAnyExceptInRange(' ', '~') && !text.Contains('%', StringComparison.Ordinal);

    /// <summary>
    /// Removes the HTTP server's limits on bodies: messages have a limit of their own, and a stream may be silent for
    /// hours.
    /// </summary>
    private static void RemoveBodyLimits(HttpContext http)
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

    /// <summary>Replaces the web server's feature, which creates and disposes a scope for each call.</summary>
    private sealed class SharedProvider(IServiceProvider provider) : IServiceProvidersFeature
    {
        public IServiceProvider RequestServices { get; set; } = provider;
    }
}
