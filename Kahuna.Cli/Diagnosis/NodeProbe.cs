using System.Net;
using System.Net.Http.Headers;
using System.Security.Authentication;
using System.Text.Json;
using Kahuna.Client;
using Kahuna.Client.Connection;

namespace Kahuna.Cli.Diagnosis;

/// <summary>
/// Asks nodes for their <c>/status</c>, with the trust and the credentials of the client. It reads 4 MiB of an answer
/// at most, and waits as long as for a connection. Used by one command.
/// </summary>
/// <param name="options">Those of the client.</param>
internal sealed class NodeProbe(KahunaClientOptions options) : IDisposable
{
    private const int AnswerBytesMax = 4 << 20;

    private readonly Dictionary<Uri, HttpClient> _clients = [];

    /// <summary>Asks all nodes at the same time; the reports are in their order.</summary>
    public Task<NodeReport[]> ReadAsync(IEnumerable<Uri> endpoints, CancellationToken ct) =>
        Task.WhenAll(endpoints.Select(ClientFor).ToArray().Select(
            node => ReadAsync(node.Endpoint, node.Client, node.Problem, ct)));

    /// <inheritdoc/>
    public void Dispose()
    {
        foreach (HttpClient client in _clients.Values)
        {
            client.Dispose();
        }
    }

    private async Task<NodeReport> ReadAsync(Uri endpoint, HttpClient? client, string? problem, CancellationToken ct)
    {
        if (client is null)
        {
            return new NodeReport(endpoint) { Problem = problem };
        }

        try
        {
            using HttpRequestMessage request = new(HttpMethod.Get, new Uri(endpoint, "/status"));
            if (options.Credentials is { } credentials
                && await credentials.Source.ReadAsync(ct).ConfigureAwait(false) is { } authorization)
            {
                request.Headers.TryAddWithoutValidation("authorization", authorization);
            }

            DateTimeOffset asked = DateTimeOffset.UtcNow;
            using HttpResponseMessage answer = await client.SendAsync(request, ct).ConfigureAwait(false);
            NodeReport report = new(endpoint) { ClockAhead = ClockAhead(answer.Headers, asked, DateTimeOffset.UtcNow) };
            return answer.StatusCode switch
            {
                HttpStatusCode.OK => report with { Status = await StatusOfAsync(answer, ct).ConfigureAwait(false) },
                HttpStatusCode.Unauthorized or HttpStatusCode.Forbidden =>
                    report with { IsRefused = true, Problem = "only administrators may read its status" },
                _ => report with { Problem = $"it answers with HTTP status {(int)answer.StatusCode}" },
            };
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            return new NodeReport(endpoint) { Problem = "it does not answer" };
        }
        catch (JsonException)
        {
            return new NodeReport(endpoint) { Problem = "its status is no JSON" };
        }
        catch (Exception failure) when (failure is HttpRequestException or IOException)
        {
            return new NodeReport(endpoint) { Problem = WhyOf(failure) };
        }
    }

    private static async Task<NodeStatus> StatusOfAsync(HttpResponseMessage answer, CancellationToken ct)
    {
        using JsonDocument document = JsonDocument.Parse(
            await answer.Content.ReadAsByteArrayAsync(ct).ConfigureAwait(false));
        return new NodeStatus(document.RootElement.Clone());
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

    private (Uri Endpoint, HttpClient? Client, string? Problem) ClientFor(Uri endpoint)
    {
        if (_clients.TryGetValue(endpoint, out HttpClient? known))
        {
            return (endpoint, known, null);
        }

        try
        {
            SocketsHttpHandler handler = new()
            {
                AllowAutoRedirect = false,
                UseProxy = false,
                ConnectTimeout = options.ConnectTimeout,
                SslOptions = ServerTrust.For(endpoint, options.TrustedCaFile, options.Insecure),
            };
            handler.SslOptions.ClientCertificateContext = options.Credentials?.Certificate?.Read();
            HttpClient client = new(handler)
            {
                Timeout = options.ConnectTimeout,
                MaxResponseContentBufferSize = AnswerBytesMax,
            };
            _clients.Add(endpoint, client);
            return (endpoint, client, null);
        }
        catch (IOException failure)
        {
            return (endpoint, null, failure.Message);
        }
    }

    /// <summary>The innermost cause says most: a refused connection, a certificate.</summary>
    private static string WhyOf(Exception failure)
    {
        if (UntrustedServerException.Find(failure) is { } untrusted)
        {
            return untrusted.Replace("TrustedCaFile", "--trusted-ca", StringComparison.Ordinal);
        }

        while (failure.InnerException is { } inner and not AuthenticationException)
        {
            failure = inner;
        }

        return (failure.InnerException ?? failure).Message.TrimEnd('.');
    }
}
