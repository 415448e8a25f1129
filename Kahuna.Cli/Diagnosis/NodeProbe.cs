using System.Net;
using System.Net.Http.Headers;
using System.Text.Json;
using Kahuna.Cli.Connecting;
using Kahuna.Client;

namespace Kahuna.Cli.Diagnosis;

/// <summary>
/// Asks nodes about themselves, each on its own: what <c>/status</c> and the pages below it say. Used by one command.
/// </summary>
/// <param name="options">Those of the client.</param>
internal sealed class NodeProbe(KahunaClientOptions options) : IDisposable
{
    private readonly NodeHttp _http = new(options);

    /// <summary>Asks all nodes for their status at the same time; the reports are in their order.</summary>
    public async Task<NodeReport[]> ReadAsync(IEnumerable<Uri> endpoints, CancellationToken ct) =>
    [
        .. (await AskAsync(endpoints, "/status", ct).ConfigureAwait(false)).Select(static answer =>
            new NodeReport(answer.Endpoint)
            {
                Status = answer.Root is { } root ? new NodeStatus(root) : null,
                Problem = answer.Problem,
                IsRefused = answer.IsRefused,
                ClockAhead = answer.ClockAhead,
            }),
    ];

    /// <summary>Asks all nodes at the same time; the answers are in their order.</summary>
    /// <param name="endpoints">The nodes.</param>
    /// <param name="path">Path and query of a page that is JSON.</param>
    /// <param name="ct">Ends the wait.</param>
    public Task<NodeAnswer[]> AskAsync(IEnumerable<Uri> endpoints, string path, CancellationToken ct) =>
        Task.WhenAll(endpoints.Select(endpoint => (Endpoint: endpoint, Problem: TryOpen(endpoint))).ToArray()
            .Select(node => node.Problem is null
                ? AskAsync(node.Endpoint, path, ct)
                : Task.FromResult(new NodeAnswer(node.Endpoint) { Problem = node.Problem })));

    /// <inheritdoc/>
    public void Dispose() => _http.Dispose();

    private async Task<NodeAnswer> AskAsync(Uri endpoint, string path, CancellationToken ct)
    {
        NodeAnswer unknown = new(endpoint);
        try
        {
            DateTimeOffset asked = DateTimeOffset.UtcNow;
            using HttpResponseMessage answer = await _http.GetAsync(endpoint, path, ct).ConfigureAwait(false);
            NodeAnswer known = unknown with { ClockAhead = ClockAhead(answer.Headers, asked, DateTimeOffset.UtcNow) };
            return answer.StatusCode switch
            {
                HttpStatusCode.OK => known with { Root = await RootOfAsync(answer, ct).ConfigureAwait(false) },
                HttpStatusCode.Unauthorized or HttpStatusCode.Forbidden =>
                    known with { IsRefused = true, Problem = "only administrators may read its status" },
                _ => known with { Problem = $"it answers with HTTP status {(int)answer.StatusCode}" },
            };
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            return unknown with { Problem = "it does not answer" };
        }
        catch (JsonException)
        {
            return unknown with { Problem = "its status is no JSON" };
        }
        catch (Exception failure) when (failure is HttpRequestException or IOException)
        {
            return unknown with { Problem = NodeHttp.WhyOf(failure) };
        }
    }

    private string? TryOpen(Uri endpoint)
    {
        try
        {
            _http.Open(endpoint);
            return null;
        }
        catch (IOException failure)
        {
            return failure.Message;
        }
    }

    private static async Task<JsonElement> RootOfAsync(HttpResponseMessage answer, CancellationToken ct)
    {
        using JsonDocument document = JsonDocument.Parse(
            await answer.Content.ReadAsByteArrayAsync(ct).ConfigureAwait(false));
        return document.RootElement.Clone();
    }

    /// <summary>
    /// The header has whole seconds: the node's clock was at it, or less than a second later, at some moment between
    /// the question and the answer.
    /// </summary>
    private static TimeSpan? ClockAhead(HttpResponseHeaders headers, DateTimeOffset asked, DateTimeOffset answered)
    {
        if (headers.Date is not { } date)
        {
            return null;
        }

        TimeSpan atLeast = date - answered;
        TimeSpan atMost = date.AddSeconds(1) - asked;
        return atLeast > TimeSpan.Zero ? atLeast : atMost < TimeSpan.Zero ? atMost : TimeSpan.Zero;
    }
}
