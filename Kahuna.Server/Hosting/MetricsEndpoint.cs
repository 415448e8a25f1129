using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Page;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>GET /metrics</c>: the metrics of the node in the text format of Prometheus (docs/metrics.md). Any thread.
/// </summary>
/// <param name="page">Makes the page.</param>
internal sealed class MetricsEndpoint(MetricsPage page)
{
    /// <summary>How long a caller waits for a page.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(30);

    /// <summary>Adds it.</summary>
    public void Map(IEndpointRouteBuilder app) => app.MapGet("/metrics", AnswerAsync);

    private async Task AnswerAsync(HttpContext context)
    {
        try
        {
            byte[] text = await page.ReadAsync().WaitAsync(s_patience, context.RequestAborted);
            context.Response.ContentType = MetricsPage.ContentType;
            await PatientAnswer.SendAsync(context, text);
        }
        catch (InvalidOperationException error)
        {
            await RefuseAsync(context, error.Message);
        }
        catch (TimeoutException)
        {
            await RefuseAsync(context, "The metrics could not be read in time; try again later.");
        }
        catch (OperationCanceledException)
        {
            // The caller has disconnected.
        }
    }

    private static Task RefuseAsync(HttpContext context, string sentence)
    {
        context.Response.StatusCode = StatusCodes.Status503ServiceUnavailable;
        return PatientAnswer.SendLineAsync(context, sentence);
    }
}
