using System.Text.Json;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>Asks a node's <c>/status</c> where its state lies. Stateless.</summary>
internal static class ServerStore
{
    /// <summary>The name of the state store; null when the node does not say it, which is no reason not to measure it.</summary>
    public static async Task<string?> ReadAsync(Uri endpoint, bool isInsecure, CancellationToken cancellationToken)
    {
        using SocketsHttpHandler handler = new();
        if (isInsecure)
        {
            handler.SslOptions.RemoteCertificateValidationCallback = static (_, _, _, _) => true;
        }

        using HttpClient http = new(handler);
        try
        {
            using Stream body = await http.GetStreamAsync(new Uri(endpoint, "/status"), cancellationToken).ConfigureAwait(false);
            using JsonDocument status = await JsonDocument.ParseAsync(body, cancellationToken: cancellationToken).ConfigureAwait(false);
            return status.RootElement.GetProperty("storage").GetProperty("stateStore").GetString();
        }
        catch (Exception failure) when (failure is HttpRequestException or IOException or JsonException or KeyNotFoundException or InvalidOperationException)
        {
            return null;
        }
    }
}
