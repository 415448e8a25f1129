using System.Net;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Client.Connection;

/// <summary>Decides which server certificates a client accepts. Made once per endpoint; immutable, any thread.</summary>
internal static class ServerTrust
{
    /// <summary>
    /// TLS settings for one endpoint. A trusted CA file replaces the machine's roots; without one, an endpoint on the
    /// loopback interface is also trusted by the development authority of a local server, if there is one. Name and
    /// address are always checked by .NET, except with <see cref="KahunaClientOptions.Insecure"/>.
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

        if (trustedCaFile is not null)
        {
            tls.CertificateChainPolicy = Policy(Read(trustedCaFile));
        }
        else if (IsLoopback(endpoint))
        {
            tls.RemoteCertificateValidationCallback = static (_, certificate, chain, errors) => IsTrusted(certificate, chain, errors);
        }

        return tls;
    }

    /// <summary>The host is this machine by name or address.</summary>
    public static bool IsLoopback(Uri endpoint) =>
        endpoint.IdnHost.Equals("localhost", StringComparison.OrdinalIgnoreCase)
        || (IPAddress.TryParse(endpoint.IdnHost, out IPAddress? address) && IPAddress.IsLoopback(address));

    /// <summary>
    /// What the machine's roots accept is accepted; what fails only for its root is tried with the development authority,
    /// whose file is read at that moment because a local server may have made it after the client.
    /// </summary>
    private static bool IsTrusted(X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if (errors != SslPolicyErrors.RemoteCertificateChainErrors || certificate is null || !File.Exists(DevelopmentCertificates.AuthorityPath()))
        {
            return errors == SslPolicyErrors.None;
        }

        using X509Chain own = new() { ChainPolicy = Policy(Read(DevelopmentCertificates.AuthorityPath())) };
        if (chain is not null)
        {
            // What the server sent between its certificate and the root.
            X509Certificate2[] sent = [.. chain.ChainElements.Select(static element => element.Certificate)];
            own.ChainPolicy.ExtraStore.AddRange(sent);
        }

        using X509Certificate2 leaf = new(certificate);
        return own.Build(leaf);
    }

    private static X509ChainPolicy Policy(X509Certificate2Collection roots)
    {
        X509ChainPolicy policy = new()
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust,
            RevocationMode = X509RevocationMode.NoCheck,
        };
        policy.ApplicationPolicy.Add(new Oid("1.3.6.1.5.5.7.3.1"));
        policy.CustomTrustStore.AddRange(roots);
        return policy;
    }

    private static X509Certificate2Collection Read(string file)
    {
        try
        {
            X509Certificate2Collection certificates = [];
            certificates.ImportFromPemFile(file);
            return certificates.Count > 0 ? certificates : throw new IOException($"The certificate file \"{file}\" holds no certificate.");
        }
        catch (Exception e) when (e is CryptographicException or UnauthorizedAccessException)
        {
            throw new IOException($"The certificate file \"{file}\" cannot be read: {e.Message}", e);
        }
    }
}
