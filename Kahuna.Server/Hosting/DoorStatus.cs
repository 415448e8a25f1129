using System.Globalization;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The part of <c>/status</c> about limits, certificates and connections: what the node may use, when the first of the
/// certificates expires that the node depends on, and what its port refuses. Immutable; any thread.
/// </summary>
/// <param name="tls">The node's certificate and the authorities that it trusts.</param>
/// <param name="clients">The authorities of client certificates; null: none are accepted.</param>
/// <param name="addresses">The connections of each address.</param>
/// <param name="time">The clock.</param>
internal sealed class DoorStatus(
    TlsSource tls, Func<X509Certificate2Collection>? clients, AddressLimiter addresses, TimeProvider time)
{
    /// <summary>What the node may use: memory for data of either durability, and disk for its log.</summary>
    public (long PersistentBytes, long EphemeralBytes, long LogBytes) Limits { get; init; }

    /// <summary>The direct links of clients; null: there are none.</summary>
    public DirectLinks? Direct { get; init; }

    /// <summary>Adds the objects.</summary>
    public void Write(Utf8JsonWriter json)
    {
        json.WriteStartObject("limits");
        json.WriteNumber("persistentBytes", Limits.PersistentBytes);
        json.WriteNumber("ephemeralBytes", Limits.EphemeralBytes);
        json.WriteNumber("logBytes", Limits.LogBytes);
        json.WriteEndObject();
        DateTime now = time.GetUtcNow().UtcDateTime;
        (string part, X509Certificate2 certificate) = CertificateChain.FirstToEnd(tls.Current, now);
        if (clients is not null
            && CertificateChain.FirstToEnd(clients(), now) is { } authority
            && authority.NotAfter < certificate.NotAfter)
        {
            (part, certificate) = (ClientAuthorities.Part, authority);
        }

        DateTime end = certificate.NotAfter.ToUniversalTime();
        json.WriteStartObject("certificate");
        json.WriteString("part", part);
        json.WriteString("subject", certificate.Subject);
        json.WriteString("expires", end.ToString("yyyy-MM-ddTHH:mm:ssZ", CultureInfo.InvariantCulture));
        json.WriteNumber("secondsLeft", (long)(end - now).TotalSeconds);
        json.WriteEndObject();
        (int open, int sources, long refused) = addresses.Figures;
        json.WriteStartObject("connections");
        json.WriteNumber("counted", open);
        json.WriteNumber("addresses", sources);
        json.WriteNumber("maxPerAddress", addresses.Max);
        json.WriteNumber("refused", refused);
        json.WriteNumber("direct", Direct?.Open ?? 0);
        json.WriteEndObject();
    }
}
