using System.Globalization;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Page;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>GET /status/slow?limit=N</c>: the newest operations of this node that took long (<see cref="SlowLog"/>).
/// Stateless.
/// </summary>
internal static class SlowEndpoint
{
    /// <summary>Operations of an answer, unless the caller wants another number.</summary>
    private const int LimitDefault = 100;

    /// <summary>Adds it.</summary>
    /// <param name="app">The node's web server.</param>
    /// <param name="log">The operations.</param>
    public static void Map(IEndpointRouteBuilder app, SlowLog log) =>
        app.MapGet(AccessPolicies.SlowPath, context => AnswerAsync(context, log));

    private static Task AnswerAsync(HttpContext context, SlowLog log)
    {
        HttpResponse response = context.Response;
        string? text = context.Request.Query["limit"];
        int limit = LimitDefault;
        if (text is not null
            && (!int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out limit)
                || limit is < 1 or > SlowLog.Kept))
        {
            response.StatusCode = StatusCodes.Status400BadRequest;
            return PatientAnswer.SendLineAsync(context, $"'limit' must be a number from 1 to {SlowLog.Kept}.");
        }

        response.ContentType = "application/json";
        response.Headers.CacheControl = "no-store";
        response.Headers.XContentTypeOptions = "nosniff";
        return PatientAnswer.SendAsync(context, log.Render(limit));
    }
}
