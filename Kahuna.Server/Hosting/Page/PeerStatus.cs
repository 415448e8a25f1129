using System.Net.Security;
using System.Text.Json;
using Kahuna.Client.Connection;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// Asks another node for one thing over HTTPS, as a node of the cluster. Owned by <see cref="ClusterStatus"/>, which
/// has one question to a node under way at a time.
/// </summary>
/// <param name="node">The address that the node advertises.</param>
/// <param name="question">What is asked.</param>
/// <param name="trustedCaFile">Authority of the nodes' certificates; null: the system's.</param>
/// <param name="credential">Identifies this node there, with its certificate if it shows one.</param>
internal sealed class PeerStatus(
    Uri node, NodeQuestion question, string? trustedCaFile, NodeCredential credential) : IDisposable
{
    private static readonly TimeSpan s_idle = TimeSpan.FromSeconds(30);

    private HttpClient? _client;
    private SslStreamCertificateContext? _shown;

    /// <summary>The answer as JSON.</summary>
    /// <param name="query">More about the question, as it follows the path.</param>
    /// <param name="ct">Gives up.</param>
    /// <exception cref="HttpRequestException">It does not answer, or answers more than
    /// <see cref="NodeQuestion.BytesMax"/>.</exception>
    /// <exception cref="IOException">The trusted CA file cannot be read.</exception>
    /// <exception cref="InvalidDataException">It answers something else.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled first.</exception>
    public async Task<byte[]> AskAsync(string query, CancellationToken ct)
    {
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(node, question.Path + query));
        request.Headers.Add(NodeCredential.Header, credential.Value);
        using HttpResponseMessage response = await Client().SendAsync(request, ct).ConfigureAwait(false);
        if (!response.IsSuccessStatusCode)
        {
            throw new InvalidDataException(
                $"It answers {(int)response.StatusCode}: another version, or another cluster secret.");
        }

        byte[] answer = await response.Content.ReadAsByteArrayAsync(ct).ConfigureAwait(false);
        try
        {
            using JsonDocument document = JsonDocument.Parse(answer);
        }
        catch (JsonException)
        {
            throw new InvalidDataException("It answers something that is not JSON.");
        }

        return answer;
    }

    public void Dispose() => _client?.Dispose();

    /// <summary>The client, made anew when the certificate was replaced that this node shows.</summary>
    private HttpClient Client()
    {
        SslStreamCertificateContext? shown = credential.Certificate?.Current;
        if (_client is null || shown != _shown)
        {
            _client?.Dispose();
            _shown = shown;
            SslClientAuthenticationOptions tls = ServerTrust.For(node, trustedCaFile, insecure: false);
            tls.ClientCertificateContext = shown;
            tls.AllowTlsResume = shown is null;
            _client = new HttpClient(new SocketsHttpHandler
            {
                ActivityHeadersPropagator = null,
                AllowAutoRedirect = false,
                MaxConnectionsPerServer = 1,
                PooledConnectionIdleTimeout = s_idle,
                SslOptions = tls,
                UseCookies = false,
                UseProxy = false,
            })
            {
                MaxResponseContentBufferSize = question.BytesMax,
                Timeout = Timeout.InfiniteTimeSpan,
            };
        }

        return _client;
    }

    /// <summary>Why a node has not answered, in one line; null: the exception is about something else.</summary>
    public static string? ProblemOf(Exception error) => error switch
    {
        OperationCanceledException => "No answer in time.",
        HttpRequestException or IOException or InvalidDataException or ObjectDisposedException =>
            OneLine.Of((error.InnerException ?? error).Message),
        _ => null,
    };
}
