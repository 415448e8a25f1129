using System.Diagnostics;
using Kahuna.Server.Api.Access;

namespace Kahuna.Server.Api;

/// <summary>
/// The activities of a node, as the source <c>Kahuna.Server</c> (docs/traces.md): of operations at the node that leads,
/// of unary calls, and of requests that are forwarded. A listener that throws does not reach what it listens to. Owned
/// by the node; any thread.
/// </summary>
internal sealed class ServerTraces : IDisposable
{
    /// <summary>The name of the source.</summary>
    public const string Name = "Kahuna.Server";

    private const string StreamingService = "/kahuna.v1.Cluster/";

    /// <summary>Begins with nothing.</summary>
    /// <param name="clock">The node's clock.</param>
    /// <param name="ratio">The share of the operations without a caller's trace that get one of their own.</param>
    public ServerTraces(TimeProvider clock, double ratio = 0) =>
        Contexts = new TraceContexts(clock, Source.HasListeners, ratio);

    /// <summary>The node's own source: others of the process have the same name.</summary>
    public ActivitySource Source { get; } =
        new(Name, typeof(ServerTraces).Assembly.GetName().Version?.ToString(3));

    /// <summary>The traces of what is under way.</summary>
    public TraceContexts Contexts { get; }

    /// <summary>The activity of the call that runs, if it is one of this source.</summary>
    public Activity? Current => Activity.Current is { Recorded: true } current && current.Source == Source
        ? current : null;

    /// <summary>Starts an activity; null: nobody records it.</summary>
    public Activity? Start(string name, ActivityKind kind, in ActivityContext parent)
    {
        try
        {
            return Source.StartActivity(name, kind, parent);
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            return null;
        }
    }

    /// <summary>Starts the activity of a request that goes on to the leader; null: nobody records it.</summary>
    public Activity? StartForwarding(in ActivityContext parent) =>
        parent == default ? null : Start("forward", ActivityKind.Server, in parent);

    /// <summary>Ends an activity, if there is one.</summary>
    public static void Stop(Activity? activity)
    {
        try
        {
            activity?.Dispose();
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // A listener has failed; what it listens to must not.
        }
    }

    /// <summary>
    /// Handles a call with an activity of its own, if its caller sends a trace (header <c>traceparent</c>) and somebody
    /// records it. The operations that it carries out are children.
    /// </summary>
    public Task HandleAsync(HttpContext http, RequestDelegate next) =>
        Source.HasListeners()
        && http.GetEndpoint() is { } endpoint
        && AccessPolicies.NameOf(endpoint) is { } name
        && !name.StartsWith(StreamingService, StringComparison.Ordinal)
        && ActivityContext.TryParse(
            http.Request.Headers.TraceParent,
            http.Request.Headers.TraceState,
            isRemote: true,
            out ActivityContext parent)
            ? HandleTracedAsync(http, next, name, parent)
            : next(http);

    private async Task HandleTracedAsync(
        HttpContext http, RequestDelegate next, string name, ActivityContext parent)
    {
        Activity? activity = Start(name.TrimStart('/'), ActivityKind.Server, in parent);
        try
        {
            await next(http).ConfigureAwait(false);
        }
        finally
        {
            activity?.SetTag("http.response.status_code", http.Response.StatusCode);
            Stop(activity);
        }
    }

    /// <inheritdoc/>
    public void Dispose() => Source.Dispose();
}
