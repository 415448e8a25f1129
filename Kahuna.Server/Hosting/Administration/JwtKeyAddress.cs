using System.Text.Json;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Hosting.Options;
using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// The keys of an issuer from an https address: a key set, or an OpenID configuration that names one. They are asked
/// for at the start, every ten minutes, and when a token names a key that is not known, but not more often than twice a
/// minute. Without an answer the known keys count. Owned by the node; any thread.
/// </summary>
internal sealed class JwtKeyAddress : IJwtKeys, IDisposable
{
    /// <summary>Of an answer.</summary>
    private const int BytesMax = 1 << 20;

    private static readonly TimeSpan s_interval = TimeSpan.FromMinutes(10);
    private static readonly TimeSpan s_pause = TimeSpan.FromSeconds(30);
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(10);

    private readonly Uri _address;
    private readonly string _issuer;
    private readonly ILogger _log;
    private readonly TimeProvider _time;
    private readonly HttpClient _client;
    private readonly Lock _lock = new();
    private volatile IReadOnlyList<SecurityKey> _current = [];
    private Task<bool> _asking = Task.FromResult(false);
    private long? _askedAt;
    private string? _reported;

    /// <summary>Asks nothing yet; <see cref="Check"/> does.</summary>
    /// <param name="address">https.</param>
    /// <param name="issuer">What an OpenID configuration must name as its issuer.</param>
    /// <param name="log">Receives the events.</param>
    /// <param name="time">The clock.</param>
    /// <param name="handler">Sends the requests; null: the network.</param>
    public JwtKeyAddress(
        Uri address, string issuer, ILogger log, TimeProvider time, HttpMessageHandler? handler = null)
    {
        (_address, _issuer, _log, _time) = (address, issuer, log, time);

        // A redirect could lead anywhere, and to http.
        _client = new HttpClient(handler ?? new SocketsHttpHandler { AllowAutoRedirect = false, UseCookies = false })
        {
            Timeout = s_patience,
            MaxResponseContentBufferSize = BytesMax,
        };
    }

    public IReadOnlyList<SecurityKey> Current => _current;

    public async ValueTask<bool> RefreshAsync(CancellationToken ct)
    {
        IReadOnlyList<SecurityKey> before = _current;
        await Ask(s_pause).WaitAsync(ct).ConfigureAwait(false);
        return !ReferenceEquals(before, _current);
    }

    /// <summary>Asks if it is time to. Does not wait for the answer.</summary>
    public void Check() => _ = Ask(s_interval);

    public void Dispose() => _client.Dispose();

    /// <summary>Asks unless it was done less than that long ago, or is being done.</summary>
    private Task<bool> Ask(TimeSpan age)
    {
        lock (_lock)
        {
            // Without keys nothing can be checked, so that they are asked for more often.
            TimeSpan pause = _current.Count == 0 && age > s_pause ? s_pause : age;
            if (_asking.IsCompleted && (_askedAt is not { } at || _time.GetElapsedTime(at) >= pause))
            {
                _askedAt = _time.GetTimestamp();
                _asking = AskAsync();
            }

            return _asking;
        }
    }

    private async Task<bool> AskAsync()
    {
        try
        {
            byte[] content = await GetAsync(_address).ConfigureAwait(false);
            if (KeysOf(content) is { } keys)
            {
                content = await GetAsync(keys).ConfigureAwait(false);
            }

            IReadOnlyList<SecurityKey> read = JwtKeySet.Read(content);
            if (!AreEqual(read, _current))
            {
                _current = read;
                _log.JwtKeysRead(read.Count, _address.ToString());
            }

            _reported = null;
            return true;
        }
        catch (Exception error) when (
            error is HttpRequestException or IOException or InvalidDataException or JsonException
                or OperationCanceledException or ObjectDisposedException)
        {
            if (_reported != error.Message)
            {
                _reported = error.Message;
                _log.JwtKeysNotRead(_address.ToString(), OneLine.Of(error.Message));
            }

            return false;
        }
    }

    private Task<byte[]> GetAsync(Uri address) => _client.GetByteArrayAsync(address);

    /// <summary>
    /// The address of the keys if the content is an OpenID configuration; null: it is something else.
    /// </summary>
    private Uri? KeysOf(byte[] content)
    {
        if (content.AsSpan().TrimStart(" \r\n\t"u8) is not [(byte)'{', ..])
        {
            return null;
        }

        using JsonDocument document = JsonDocument.Parse(content);
        JsonElement root = document.RootElement;
        return !root.TryGetProperty("jwks_uri", out JsonElement keys) ? null
            : !root.TryGetProperty("issuer", out JsonElement issuer) || issuer.ToString() != _issuer
                ? throw new InvalidDataException("the OpenID configuration is of another issuer.")
            : Uri.TryCreate(keys.ToString(), UriKind.Absolute, out Uri? address) && address.Scheme == Uri.UriSchemeHttps
                ? address
                : throw new InvalidDataException("the OpenID configuration names no https address of keys.");
    }

    /// <summary>The same keys stay the same objects, so that what was checked by them need not be again.</summary>
    private static bool AreEqual(IReadOnlyList<SecurityKey> some, IReadOnlyList<SecurityKey> others) =>
        some.Count == others.Count
            && some.Zip(others).All(static pair =>
                pair.First.CanComputeJwkThumbprint()
                && pair.Second.CanComputeJwkThumbprint()
                && pair.First.KeyId == pair.Second.KeyId
                && pair.First.ComputeJwkThumbprint().AsSpan().SequenceEqual(pair.Second.ComputeJwkThumbprint()));
}
