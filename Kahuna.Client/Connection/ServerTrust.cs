using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Client.Connection;

/// <summary>
/// Decides which server certificates a client accepts. A trusted CA file replaces the machine's roots. Without one, a
/// loopback endpoint is also trusted by the development authority of a local server. .NET always checks name and
/// address. Made once per endpoint; any thread.
/// </summary>
internal sealed class ServerTrust
{
    private const string ServerAuthentication = "1.3.6.1.5.5.7.3.1";

    private readonly Uri _endpoint;
    private readonly CertificateFile? _named;

    private ServerTrust(Uri endpoint, string? trustedCaFile)
    {
        _endpoint = endpoint;
        _named = trustedCaFile is null ? null : new CertificateFile(trustedCaFile);
    }

    /// <summary>
    /// TLS settings for one endpoint. A changed CA file is read at the next handshake, so that a new authority needs no
    /// restart.
    /// </summary>
    /// <exception cref="IOException">The trusted CA file cannot be read.</exception>
    public static SslClientAuthenticationOptions For(Uri endpoint, string? trustedCaFile, bool insecure)
    {
        SslClientAuthenticationOptions tls = new() { TargetHost = endpoint.IdnHost };
        if (insecure)
        {
            tls.RemoteCertificateValidationCallback = static (_, _, _, _) => true;
            return tls;
        }

        ServerTrust trust = new(endpoint, trustedCaFile);
        trust._named?.Read();
        tls.RemoteCertificateValidationCallback = (_, certificate, chain, errors) =>
            trust.Objection(certificate, chain, errors) is { } objection
                ? throw new UntrustedServerException(objection)
                : true;
        return tls;
    }

    /// <summary>True when the host is this machine by name or address.</summary>
    public static bool IsLoopback(Uri endpoint) =>
        endpoint.IdnHost.Equals("localhost", StringComparison.OrdinalIgnoreCase)
        || (IPAddress.TryParse(endpoint.IdnHost, out IPAddress? address) && IPAddress.IsLoopback(address));

    /// <summary>Why a certificate is not accepted, with the option that decides; null when it is.</summary>
    private string? Objection(X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if (certificate is null || (errors & SslPolicyErrors.RemoteCertificateNotAvailable) != 0)
        {
            return $"{_endpoint.Authority} shows no certificate";
        }

        string named = $"the certificate of {_endpoint.Authority} ({certificate.Subject})";
        if ((errors & SslPolicyErrors.RemoteCertificateNameMismatch) != 0)
        {
            return $"{named} is for other names than \"{_endpoint.IdnHost}\"";
        }

        if (_named is not null)
        {
            return Build(certificate, chain, _named.Read()) is { } reason
                ? $"{named} is not trusted by TrustedCaFile \"{_named.Path}\": {reason}"
                : null;
        }

        if (errors == SslPolicyErrors.None)
        {
            return null;
        }

        // The file is looked up now because a local server may have made it after the client started.
        string development = DevelopmentAuthority.AuthorityPath();
        string? untrusted = IsLoopback(_endpoint) && File.Exists(development)
            ? Build(certificate, chain, new CertificateFile(development).Read())
            : Reasons(chain);
        return untrusted is null
            ? null
            : $"{named} is not trusted by this machine: {untrusted}; set TrustedCaFile to the file of its authority";
    }

    /// <summary>Builds the certificate's chain to the given roots; returns why that fails, or null.</summary>
    private static string? Build(X509Certificate certificate, X509Chain? received, X509Certificate2Collection roots)
    {
        using X509Chain own = new();
        own.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
        own.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
        own.ChainPolicy.ApplicationPolicy.Add(new Oid(ServerAuthentication));
        own.ChainPolicy.CustomTrustStore.AddRange(roots);
        if (received is not null)
        {
            // The certificates that the server sent between its own and the root.
            X509Certificate2[] sent = [.. received.ChainElements.Select(static element => element.Certificate)];
            own.ChainPolicy.ExtraStore.AddRange(sent);
        }

        using X509Certificate2 leaf = new(certificate);
        return own.Build(leaf) ? null : Reasons(own);
    }

    private static string Reasons(X509Chain? chain) =>
        chain is { ChainStatus.Length: > 0 }
            ? string.Join(", ", chain.ChainStatus.Select(static status => status.Status).Distinct())
            : "its chain cannot be built";
}

/// <summary>
/// A server's certificate is not trusted. No further attempt can succeed until a certificate or an option changes, so
/// calls fail at once.
/// </summary>
internal sealed class UntrustedServerException(string message) : AuthenticationException(message)
{
    /// <summary>The message of such an exception among a failure's causes; otherwise null.</summary>
    public static string? Find(Exception? failure)
    {
        for (; failure is not null; failure = failure.InnerException)
        {
            if (failure is UntrustedServerException untrusted)
            {
                return untrusted.Message;
            }
        }

        return null;
    }
}
