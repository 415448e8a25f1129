using System.Collections.Frozen;
using Kahuna.Client.Wire.Grpc;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.Extensions.Logging.Abstractions;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// The services of an endpoint: finds the method of a request, checks that the request is gRPC, and runs it. Filled by its
/// maker at start-up; afterwards any thread.
/// </summary>
internal sealed class GrpcServer
{
    private readonly Dictionary<string, GrpcMethodHandler> _bound = new(StringComparer.Ordinal);
    private readonly List<ServiceDescriptor> _services = [];
    private FrozenDictionary<string, GrpcMethodHandler>? _methods;

    public GrpcServer(GrpcServerOptions? options = null, ILogger? logger = null)
    {
        Options = options ?? new GrpcServerOptions();
        Logger = logger ?? NullLogger.Instance;
    }

    /// <summary>The settings that the server was made with.</summary>
    public GrpcServerOptions Options { get; }

    /// <summary>Receives the exceptions that callers do not get to see.</summary>
    public ILogger Logger { get; }

    /// <summary>The services, in the order in which they were added.</summary>
    public IReadOnlyList<ServiceDescriptor> Services => _services;

    /// <summary>Adds a service; methods that <paramref name="bind"/> leaves out answer UNIMPLEMENTED.</summary>
    public GrpcServer AddService(ServiceDescriptor service, Action<GrpcServiceBuilder> bind)
    {
        if (_methods is not null)
        {
            throw new InvalidOperationException("Services are added before the first request.");
        }

        GrpcServiceBuilder builder = new(service, _bound);
        bind(builder);
        _services.Add(service);
        return this;
    }

    /// <summary>True for requests that belong here: the path of a method, or the content type of gRPC.</summary>
    public bool Handles(HttpRequest request) =>
        Methods.ContainsKey(request.Path.Value ?? "") || GrpcProtocol.IsGrpcContentType(request.ContentType);

    /// <summary>Answers a request. Never throws for what a caller sent.</summary>
    public Task HandleAsync(HttpContext http)
    {
        if (http.RequestAborted.IsCancellationRequested)
        {
            // It was reset before its turn came: nothing is begun, and no exception is paid for.
            CountReset(http);
            return Task.CompletedTask;
        }

        string path = http.Request.Path.Value ?? "";
        if (!GrpcProtocol.IsGrpcContentType(http.Request.ContentType))
        {
            return Refuse(http, StatusCodes.Status415UnsupportedMediaType, $"The content type is '{http.Request.ContentType}'; gRPC requests have application/grpc.");
        }

        if (!HttpMethods.IsPost(http.Request.Method))
        {
            http.Response.Headers.Allow = HttpMethods.Post;
            return Refuse(http, StatusCodes.Status405MethodNotAllowed, $"The HTTP method is {http.Request.Method}; gRPC requests have POST.");
        }

        if (!HttpProtocol.IsHttp2(http.Request.Protocol) && !HttpProtocol.IsHttp3(http.Request.Protocol))
        {
            http.Response.Headers.Upgrade = "HTTP/2.0";
            return Refuse(http, StatusCodes.Status426UpgradeRequired, $"The protocol is {http.Request.Protocol}; gRPC needs HTTP/2.");
        }

        Unbound(http);
        CallContext call = new(this, http, path);
        return Methods.TryGetValue(path, out GrpcMethodHandler? method)
            ? call.RunAsync(method)
            : call.RefuseAsync(new GrpcStatus(GrpcStatusCode.Unimplemented, DescribeMissing(path)));
    }

    /// <summary>Counts a call that its caller has reset, and closes the connection when those are too many. Calls of a lost connection count, too, which has no effect.</summary>
    internal void CountReset(HttpContext http)
    {
        if (http.Features.Get<ConnectionShare>() is { } share && !share.TryReset())
        {
            GrpcLog.ConnectionClosed(Logger, $"{http.Connection.RemoteIpAddress}", ConnectionShare.Resets.Burst, ConnectionShare.Resets.PerSecond);
        }
    }

    private FrozenDictionary<string, GrpcMethodHandler> Methods => _methods ??= _bound.ToFrozenDictionary(StringComparer.Ordinal);

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

    /// <summary>For requests that are no gRPC calls: an HTTP status for everybody, and a gRPC status for proxies and clients that look for one.</summary>
    private static Task Refuse(HttpContext http, int httpStatus, string message)
    {
        http.Response.StatusCode = httpStatus;
        http.Response.Headers[GrpcProtocol.StatusHeader] = GrpcStatusText.Of(GrpcStatusCode.Internal);
        http.Response.Headers[GrpcProtocol.MessageHeader] = GrpcMessageText.Encode(message);
        return Task.CompletedTask;
    }

    private string DescribeMissing(string path)
    {
        int slash = path.LastIndexOf('/');
        string service = slash > 0 ? path[1..slash] : "";
        return _services.Exists(known => known.FullName == service)
            ? $"The service {service} has no method '{path[(slash + 1)..]}' on this server."
            : $"There is no service '{service}' on this server.";
    }
}
