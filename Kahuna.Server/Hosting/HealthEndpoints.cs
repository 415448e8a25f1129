using Kahuna.Server.Hosting.Page;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>/healthz</c>: 200 while the process answers. <c>/readyz</c>: 200 if the node can serve, else 503 with the reason.
/// Plain text, GET and HEAD, over HTTP/1.1 and 2. Stateless.
/// </summary>
internal static class HealthEndpoints
{
    private static readonly string[] s_methods = [HttpMethods.Get, HttpMethods.Head];

    /// <summary>Adds both; <paramref name="readiness"/> is called for each request, on any thread.</summary>
    public static void Map(IEndpointRouteBuilder app, Func<(bool Ready, string Reason)> readiness)
    {
        app.MapMethods("/healthz", s_methods, context => Answer(context, StatusCodes.Status200OK, "ok"));
        app.MapMethods("/readyz", s_methods, context =>
        {
            (bool ready, string reason) = readiness();
            return ready
                ? Answer(context, StatusCodes.Status200OK, "ready")
                : Answer(context, StatusCodes.Status503ServiceUnavailable, "not ready: " + reason);
        });
    }

    private static Task Answer(HttpContext context, int status, string text)
    {
        context.Response.StatusCode = status;
        context.Response.Headers.CacheControl = "no-store";
        if (HttpMethods.IsHead(context.Request.Method))
        {
            context.Response.ContentType = "text/plain; charset=utf-8";
            return Task.CompletedTask;
        }

        return PatientAnswer.SendLineAsync(context, text);
    }
}
