using System.Globalization;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>Loads the certificates named in the options, or creates development certificates. Stateless.</summary>
internal static class NodeCertificates
{
    /// <summary>Extended key usages (RFC 5280, 4.2.1.12).</summary>
    private const string ServerUse = "1.3.6.1.5.5.7.3.1";
    private const string AnyUse = "2.5.29.37.0";

    /// <summary>Loads the node's certificate and its trusted authorities.</summary>
    /// <param name="options">Names the files.</param>
    /// <param name="time">The clock.</param>
    /// <param name="waits">See <see cref="DevelopmentCertificates"/>.</param>
    /// <exception cref="CertificateException">A file is unusable; the message is one line.</exception>
    public static NodeTls Load(NodeOptions options, TimeProvider time, Action<string>? waits = null)
    {
        string directory = DevelopmentCertificates.Directory();
        DateTime now = time.GetUtcNow().UtcDateTime;
        if (options.CertificatePath is null)
        {
            DevelopmentCertificates development = new(directory, time, waits);
            NodeTls made = development.Ensure(
                [options.Advertise.IdnHost, .. options.Listen.Select(listen => listen.IdnHost)]);
            return options.TrustedCaPath is null
                ? made
                : made with { TrustedRoots = LoadRoots(options.TrustedCaPath, now) };
        }

        SslStreamCertificateContext certificate = LoadCertificate(options.CertificatePath, options.CertificateKeyPath!);
        Check(options, certificate, now);
        return new NodeTls(certificate, options.TrustedCaPath is null ? null : LoadRoots(options.TrustedCaPath, now));
    }

    /// <summary>The files that <see cref="Load"/> reads; it creates them if no certificate is named.</summary>
    public static IReadOnlyList<string> Files(NodeOptions options)
    {
        string directory = DevelopmentCertificates.Directory();
        string certificate = options.CertificatePath ?? Path.Combine(directory, DevelopmentCertificates.NodeFile);
        string key = options.CertificateKeyPath ?? Path.Combine(directory, DevelopmentCertificates.NodeKeyFile);
        return options.TrustedCaPath is null ? [certificate, key] : [certificate, key, options.TrustedCaPath];
    }

    /// <summary>Loads the certificate and watches its files.</summary>
    /// <exception cref="CertificateException">A file is unusable; the message is one line.</exception>
    public static CertificateWatch Watch(NodeOptions options, ILogger log) => new(
        Files(options),
        () => Load(options, TimeProvider.System, log.WaitsForCertificates),
        TimeProvider.System,
        log);

    /// <summary>
    /// The file of the authorities that sign the nodes' certificates; null: the system's authorities.
    /// </summary>
    public static string? TrustedCaFile(NodeOptions options) =>
        options.TrustedCaPath
            ?? (options.CertificatePath is null
                ? Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile)
                : null);

    /// <summary>Refuses a certificate that every client would refuse.</summary>
    private static void Check(NodeOptions options, SslStreamCertificateContext context, DateTime now)
    {
        string file = options.CertificatePath!;
        foreach (X509Certificate2 certificate in context.IntermediateCertificates.Prepend(context.TargetCertificate))
        {
            if (certificate.NotAfter.ToUniversalTime() <= now)
            {
                throw new CertificateException(
                    $"The certificate of {certificate.Subject} in {file} expired on "
                        + $"{Show(certificate.NotAfter)}; get a new one.");
            }

            if (certificate.NotBefore.ToUniversalTime() > now)
            {
                throw new CertificateException(
                    $"The certificate of {certificate.Subject} in {file} is valid from {Show(certificate.NotBefore)}, "
                        + $"and it is {Show(now)} now; check the clock, or use another certificate.");
            }
        }

        X509Certificate2 own = context.TargetCertificate;
        if (!own.MatchesHostname(options.Advertise.IdnHost.Trim('[', ']')))
        {
            throw new CertificateException(
                $"The certificate {file} is not for {options.Advertise.IdnHost}, which is this node's address "
                    + $"(--advertise, or its entry in --peers); every client would refuse it.");
        }

        if (!IsFor(own, ServerUse))
        {
            throw new CertificateException(
                $"The certificate {file} may not be used by servers (extended key usage); "
                    + $"every client would refuse it.");
        }

        if (options.PeerTls != PeerTlsMode.Secret)
        {
            CheckAsClient(options, own);
        }
    }

    /// <summary>Refuses a certificate by which other nodes would not know this one.</summary>
    private static void CheckAsClient(NodeOptions options, X509Certificate2 own)
    {
        string mode = $"{OptionSetting.PeerTls.Flag} {options.PeerTls.ToString().ToLowerInvariant()}";
        if (!IsFor(own, PeerCertificate.ClientUse))
        {
            throw new CertificateException(
                $"The certificate {options.CertificatePath} may not be used by clients (extended key usage), which "
                    + $"{mode} needs: nodes show it to each other. Get one for servers and clients.");
        }

        string host = PeerCertificate.HostOf(options.Advertise);
        if (!PeerCertificate.IsFor(own, host))
        {
            throw new CertificateException(
                $"The certificate {options.CertificatePath} does not have {host} among its alternative names, which "
                    + $"{mode} needs: a common name does not count there.");
        }
    }

    /// <summary>A certificate without extended key usages may be used for everything.</summary>
    private static bool IsFor(X509Certificate2 certificate, string use) =>
        certificate.Extensions.OfType<X509EnhancedKeyUsageExtension>().FirstOrDefault() is not { } usage
            || usage.EnhancedKeyUsages.Cast<Oid>().Any(allowed => allowed.Value == use || allowed.Value == AnyUse);

    private static string Show(DateTime time) =>
        time.ToUniversalTime().ToString("yyyy-MM-dd HH:mm 'UTC'", CultureInfo.InvariantCulture);

    /// <summary>
    /// Loads a certificate with its private key and the intermediate certificates that follow it in the file.
    /// </summary>
    public static SslStreamCertificateContext LoadCertificate(string certificatePath, string keyPath)
    {
        try
        {
            X509Certificate2 certificate = X509Certificate2.CreateFromPemFile(certificatePath, keyPath);
            if (!certificate.HasPrivateKey)
            {
                throw new CertificateException(
                    $"{keyPath} holds no private key for the certificate {certificatePath}.");
            }

            X509Certificate2Collection chain = [];
            chain.ImportFromPemFile(certificatePath);
            foreach (X509Certificate2 own in chain.Where(
                other => other.RawDataMemory.Span.SequenceEqual(certificate.RawDataMemory.Span)).ToArray())
            {
                chain.Remove(own);
            }

            // Offline: a start must not wait for a download of missing intermediate certificates.
            return SslStreamCertificateContext.Create(certificate, chain, offline: true);
        }
        catch (Exception error) when (
            error is CryptographicException or ArgumentException or IOException or UnauthorizedAccessException)
        {
            throw new CertificateException(
                $"Cannot use the certificate {certificatePath} with the key {keyPath} (PEM, key without a password): "
                    + $"{OneLine.Of(error.Message)}",
                error);
        }
    }

    private static X509Certificate2Collection LoadRoots(string path, DateTime now)
    {
        try
        {
            X509Certificate2Collection roots = [];
            roots.ImportFromPemFile(path);
            X509Certificate2 last = roots.MaxBy(root => root.NotAfter)
                ?? throw new CertificateException($"{path} holds no PEM certificate.");
            return last.NotAfter.ToUniversalTime() > now
                ? roots
                : throw new CertificateException(
                    $"Every authority in {path} has expired, the last one, {last.Subject}, on {Show(last.NotAfter)}; "
                        + $"this node would refuse all others. Get a new one.");
        }
        catch (Exception error) when (error is CryptographicException or IOException or UnauthorizedAccessException)
        {
            throw new CertificateException(
                $"Cannot read the trusted authorities {path}: {OneLine.Of(error.Message)}", error);
        }
    }
}
