using Grpc.Core;
using Microsoft.AspNetCore.Http;

namespace Kahuna.Tests.Api;

/// <summary>What a service sees of a call that no gRPC server made. Owned by one test.</summary>
internal sealed class TestCallContext(HttpContext http) : ServerCallContext
{
    /// <summary>The headers of the answer; null: they were not sent yet.</summary>
    public Metadata? ResponseHeaders { get; private set; }

    /// <inheritdoc/>
    protected override string MethodCore => http.Request.Path;

    /// <inheritdoc/>
    protected override string HostCore => "test";

    /// <inheritdoc/>
    protected override string PeerCore => "test";

    /// <inheritdoc/>
    protected override DateTime DeadlineCore => DateTime.MaxValue;

    /// <inheritdoc/>
    protected override Metadata RequestHeadersCore { get; } = [];

    /// <inheritdoc/>
    protected override CancellationToken CancellationTokenCore => http.RequestAborted;

    /// <inheritdoc/>
    protected override Metadata ResponseTrailersCore { get; } = [];

    /// <inheritdoc/>
    protected override Status StatusCore { get; set; }

    /// <inheritdoc/>
    protected override WriteOptions? WriteOptionsCore { get; set; }

    /// <inheritdoc/>
    protected override AuthContext AuthContextCore => new(null, []);

    /// <summary>The gRPC package finds the request under this name.</summary>
    protected override IDictionary<object, object> UserStateCore { get; } =
        new Dictionary<object, object> { ["__HttpContext"] = http };

    /// <inheritdoc/>
    protected override ContextPropagationToken CreatePropagationTokenCore(ContextPropagationOptions? options) =>
        throw new NotSupportedException();

    /// <inheritdoc/>
    protected override Task WriteResponseHeadersAsyncCore(Metadata responseHeaders)
    {
        ResponseHeaders = responseHeaders;
        return http.Response.BodyWriter.FlushAsync().AsTask();
    }
}
