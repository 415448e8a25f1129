using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Page;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>GET /metrics</c>: the metrics of the node in the text format of Prometheus (docs/metrics.md). Any thread.
/// </summary>
/// <param name="page">Makes the page.</param>
internal sealed class MetricsEndpoint(MetricsPage page)
{
    /// <summary>
    /// Callers that may be taking a page at a time. A page of a large cluster has a megabyte, and each caller that
    /// does not read may keep one that others no longer need.
    /// </summary>
    private const int CallersMax = 32;

    /// <summary>How long a caller waits for a page.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(30);

    private int _callers;

    /// <summary>Adds it.</summary>
    public void Map(IEndpointRouteBuilder app) => app.MapGet("/metrics", AnswerAsync);

    private async Task AnswerAsync(HttpContext context)
    {
        try
        {
            if (Interlocked.Increment(ref _callers) > CallersMax)
            {
                await RefuseAsync(context, "Too many callers read the metrics now; try again later.");
                return;
            }

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
        finally
        {
            Interlocked.Decrement(ref _callers);
        }
    }

    private static Task RefuseAsync(HttpContext context, string sentence)
    {
        context.Response.StatusCode = StatusCodes.Status503ServiceUnavailable;
        context.Response.ContentType = "text/plain; charset=utf-8";
        return context.Response.WriteAsync(sentence + "\n", context.RequestAborted);
    }
}
