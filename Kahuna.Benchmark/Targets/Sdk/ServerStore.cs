using System.Text.Json;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>Asks a node's <c>/status</c> where its state lies. Stateless.</summary>
internal static class ServerStore
{
    /// <summary>A node that serves answers within milliseconds; another one is asked instead.</summary>
    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(2);

    /// <summary>
    /// The name of the state store as the first node says it that answers; null when none does, which is no reason not
    /// to measure the others.
    /// </summary>
    /// <param name="endpoints">The nodes, in the order in which they are asked.</param>
    /// <param name="isInsecure">Certificates are not validated.</param>
    /// <param name="time">Clock of the limit for each node.</param>
    /// <param name="authorization">Says who asks, as the header of HTTP; null: nobody.</param>
    /// <param name="cancellationToken">Ends the search.</param>
    public static async Task<string?> ReadAsync(
        IEnumerable<Uri> endpoints,
        bool isInsecure,
        TimeProvider time,
        string? authorization,
        CancellationToken cancellationToken)
    {
        using SocketsHttpHandler handler = new() { AllowAutoRedirect = false };
        if (isInsecure)
        {
            handler.SslOptions.RemoteCertificateValidationCallback = static (_, _, _, _) => true;
        }

        using HttpClient http = new(handler);
        if (authorization is not null)
        {
            http.DefaultRequestHeaders.TryAddWithoutValidation("Authorization", authorization);
        }

        foreach (Uri endpoint in endpoints)
        {
            using CancellationTokenSource late = new(s_limit, time);
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(
                cancellationToken, late.Token);
            try
            {
                using Stream body = await http.GetStreamAsync(new Uri(endpoint, "/status"), limit.Token).ConfigureAwait(
                    false);
                using JsonDocument status = await JsonDocument.ParseAsync(
                    body, cancellationToken: limit.Token).ConfigureAwait(false);
                return status.RootElement.GetProperty("storage").GetProperty("stateStore").GetString();
            }
            catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
            {
                // It is silent.
            }
            catch (Exception failure) when (
                failure is HttpRequestException
                    or IOException
                    or JsonException
                    or KeyNotFoundException
                    or InvalidOperationException)
            {
                // It is away, or does not say it.
            }
        }

        return null;
    }
}
