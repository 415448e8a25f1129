using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>Loads the certificates that the options name, or makes development ones. Stateless.</summary>
internal static class NodeCertificates
{
    /// <summary>The node's certificate and whom it trusts.</summary>
    /// <exception cref="CertificateException">A file cannot be used; the message is one line.</exception>
    public static NodeTls Load(NodeOptions options, TimeProvider time)
    {
        string directory = DevelopmentCertificates.Directory();
        if (options.CertificatePath is null)
        {
            DevelopmentCertificates development = new(directory, time);
            NodeTls made = development.Ensure([options.Advertise.IdnHost, .. options.Listen.Select(listen => listen.IdnHost)]);
            return options.TrustedCaPath is null ? made : made with { TrustedRoots = LoadRoots(options.TrustedCaPath) };
        }

        return new NodeTls(
            LoadCertificate(options.CertificatePath, options.CertificateKeyPath!),
            options.TrustedCaPath is null ? null : LoadRoots(options.TrustedCaPath));
    }

    /// <summary>A certificate with its private key and the intermediate certificates that follow it in the file.</summary>
    public static SslStreamCertificateContext LoadCertificate(string certificatePath, string keyPath)
    {
        try
        {
            X509Certificate2 certificate = X509Certificate2.CreateFromPemFile(certificatePath, keyPath);
            X509Certificate2Collection chain = [];
            chain.ImportFromPemFile(certificatePath);
            foreach (X509Certificate2 own in chain.Where(other => other.RawDataMemory.Span.SequenceEqual(certificate.RawDataMemory.Span)).ToArray())
            {
                chain.Remove(own);
            }

            // Offline: a start must not wait for a download of missing intermediate certificates.
            return SslStreamCertificateContext.Create(certificate, chain, offline: true);
        }
        catch (Exception error) when (error is CryptographicException or ArgumentException or IOException or UnauthorizedAccessException)
        {
            throw new CertificateException($"Cannot use the certificate {certificatePath} with the key {keyPath} (PEM, key without a password): {OneLine.Of(error.Message)}", error);
        }
    }

    private static X509Certificate2Collection LoadRoots(string path)
    {
        try
        {
            X509Certificate2Collection roots = [];
            roots.ImportFromPemFile(path);
            return roots.Count > 0 ? roots : throw new CertificateException($"{path} holds no PEM certificate.");
        }
        catch (Exception error) when (error is CryptographicException or IOException or UnauthorizedAccessException)
        {
            throw new CertificateException($"Cannot read the trusted authorities {path}: {OneLine.Of(error.Message)}", error);
        }
    }
}
