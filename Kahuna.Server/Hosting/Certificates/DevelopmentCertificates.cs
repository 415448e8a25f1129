using System.Globalization;
using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using Kahuna.Server.Hosting.Options;
using Shared = Kahuna.Client.Connection.DevelopmentAuthority;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// A development authority and a node certificate from it, created once and reused, in a directory of the user:
/// <c>ca.pem</c>, <c>ca-key.pem</c>, <c>node.pem</c>, <c>node-key.pem</c>. Only their owner can read the keys. The SDK
/// trusts this authority on loopback. A lock file serializes processes that start at the same time. Any thread.
/// </summary>
/// <param name="directory">The directory; created if missing.</param>
/// <param name="time">The clock.</param>
/// <param name="waits">Called once with the path of the lock file if the wait for it is long; may be null.</param>
internal sealed class DevelopmentCertificates(string directory, TimeProvider time, Action<string>? waits = null)
{
    public const string CaFile = Shared.AuthorityFile;
    public const string CaKeyFile = "ca-key.pem";
    public const string NodeFile = "node.pem";
    public const string NodeKeyFile = "node-key.pem";

    private const string LockFile = "lock";
    private const string CaName = "CN=Kahuna development CA";

    private static readonly TimeSpan s_caLifetime = TimeSpan.FromDays(3650);
    private static readonly TimeSpan s_nodeLifetime = TimeSpan.FromDays(730);

    /// <summary>
    /// A certificate that expires within this time is renewed at start, so that a node may run at least that long.
    /// </summary>
    private static readonly TimeSpan s_renewBefore = TimeSpan.FromDays(90);

    /// <summary>Allowance for machines whose clock is behind.</summary>
    private static readonly TimeSpan s_backdate = TimeSpan.FromDays(1);

    // Error codes of the runtime for a file that another process has opened exclusively.
    private const int LinuxWouldBlock = 11;
    private const int MacWouldBlock = 35;
    private const int WindowsSharingViolation = unchecked((int)0x80070020);

    /// <summary>
    /// Longest wait for other processes. Creating two certificates takes milliseconds, but seconds on an overloaded
    /// machine, and many nodes that start together wait for each other. The system releases the lock of a process that
    /// has ended, so that only a stuck one is awaited that long.
    /// </summary>
    private static readonly TimeSpan s_lockWaitMax = TimeSpan.FromMinutes(10);

    /// <summary>A longer wait is reported to the operator.</summary>
    private static readonly TimeSpan s_lockWaitLong = TimeSpan.FromSeconds(5);

    /// <summary>The directory that clients of the same user read.</summary>
    public static string Directory() => Shared.Directory();

    /// <summary>
    /// The node certificate, created or renewed if needed. It is valid for localhost, both loopback addresses, this
    /// machine's name and <paramref name="hosts"/>, except for names that no certificate can have: Linux lets a machine
    /// have one with 64 characters.
    /// </summary>
    /// <exception cref="CertificateException">The directory is unusable; the message is one line.</exception>
    public NodeTls Ensure(IEnumerable<string> hosts)
    {
        if (!Path.IsPathRooted(directory))
        {
            throw new CertificateException(
                $"This user has no directory for application data; set {Shared.DirectoryVariable} or use "
                    + $"--certificate and --certificate-key.");
        }

        SortedSet<string> names = new(
            ["localhost", "127.0.0.1", "::1", Environment.MachineName.ToLowerInvariant(), .. hosts.Select(Normalize)],
            StringComparer.Ordinal);
        names.RemoveWhere(static name => IPAddress.TryParse(name, out IPAddress? ip)
            ? ip.Equals(IPAddress.Any) || ip.Equals(IPAddress.IPv6Any)
            : !IsName(name));
        try
        {
            System.IO.Directory.CreateDirectory(directory);
            using FileStream held = Lock();
            using X509Certificate2 authority = EnsureAuthority();
            EnsureNode(authority, names);
            return new NodeTls(
                NodeCertificates.LoadCertificate(PathOf(NodeFile), PathOf(NodeKeyFile)),
                [X509CertificateLoader.LoadCertificate(authority.RawDataMemory.Span)]);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or CryptographicException)
        {
            throw new CertificateException(
                $"Cannot create development certificates in {directory}: {OneLine.Of(error.Message)} Use "
                    + $"--certificate and --certificate-key, or set {Shared.DirectoryVariable}.",
                error);
        }
    }

    /// <summary>A certificate can have this name.</summary>
    private static bool IsName(string name)
    {
        try
        {
            return new IdnMapping().GetAscii(name).Length > 0;
        }
        catch (ArgumentException)
        {
            return false;
        }
    }

    private static string Normalize(string host) => host.Trim('[', ']').ToLowerInvariant();

    private FileStream Lock()
    {
        string path = PathOf(LockFile);
        long started = time.GetTimestamp();
        bool told = false;
        while (true)
        {
            try
            {
                return new FileStream(path, FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None, bufferSize: 0);
            }
            catch (IOException error) when (IsHeldByAnother(error))
            {
                TimeSpan waited = time.GetElapsedTime(started);
                if (waited >= s_lockWaitMax)
                {
                    throw new IOException(
                        $"Another process has held the lock {path} for "
                            + $"{s_lockWaitMax.TotalMinutes.ToString(CultureInfo.InvariantCulture)} minutes; end it "
                            + $"or let it finish, then start again.",
                        error);
                }

                if (!told && waited >= s_lockWaitLong)
                {
                    told = true;
                    waits?.Invoke(path);
                }

                // Another process is creating the certificates.
                Thread.Sleep(5);
            }
        }
    }

    /// <summary>
    /// True for a held lock. Any other error, such as a read-only file system, ends the start at once.
    /// </summary>
    private static bool IsHeldByAnother(IOException error) =>
        error.HResult is LinuxWouldBlock or MacWouldBlock or WindowsSharingViolation;

    private X509Certificate2 EnsureAuthority()
    {
        if (TryLoad(CaFile, CaKeyFile) is X509Certificate2 known)
        {
            if (IsFresh(known))
            {
                StableFile.KeepToOwner(PathOf(CaKeyFile));
                return known;
            }

            known.Dispose();
        }

        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new(CaName, key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: true, hasPathLengthConstraint: true, pathLengthConstraint: 0, critical: true));
        request.CertificateExtensions.Add(
            new X509KeyUsageExtension(X509KeyUsageFlags.KeyCertSign | X509KeyUsageFlags.CrlSign, critical: true));
        request.CertificateExtensions.Add(new X509SubjectKeyIdentifierExtension(request.PublicKey, critical: false));
        DateTimeOffset now = time.GetUtcNow();
        X509Certificate2 made = request.CreateSelfSigned(now - s_backdate, now + s_caLifetime);
        Save(CaFile, made, CaKeyFile, key);
        return made;
    }

    private void EnsureNode(X509Certificate2 authority, SortedSet<string> names)
    {
        using X509Certificate2? known = TryLoad(NodeFile, NodeKeyFile);
        if (known is not null && IsFresh(known) && IsIssuedBy(known, authority))
        {
            SortedSet<string> certified = NamesOf(known);
            if (names.IsSubsetOf(certified))
            {
                StableFile.KeepToOwner(PathOf(NodeKeyFile));
                return;
            }

            // Nodes with other names share the certificate, so it must cover all of them.
            names.UnionWith(certified);
        }

        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=Kahuna development node", key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(
            certificateAuthority: false, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        request.CertificateExtensions.Add(
            new X509KeyUsageExtension(X509KeyUsageFlags.DigitalSignature, critical: true));
        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension(
            [new Oid("1.3.6.1.5.5.7.3.1"), new Oid("1.3.6.1.5.5.7.3.2")], critical: false));
        request.CertificateExtensions.Add(new X509SubjectKeyIdentifierExtension(request.PublicKey, critical: false));
        request.CertificateExtensions.Add(X509AuthorityKeyIdentifierExtension.CreateFromCertificate(
            authority, includeKeyIdentifier: true, includeIssuerAndSerial: false));
        request.CertificateExtensions.Add(AlternativeNames(names));
        DateTimeOffset now = time.GetUtcNow();
        DateTimeOffset end = now + s_nodeLifetime;
        DateTimeOffset authorityEnd = new(authority.NotAfter.ToUniversalTime(), TimeSpan.Zero);
        using X509Certificate2 made = request.Create(
            authority, now - s_backdate, end < authorityEnd ? end : authorityEnd, RandomNumberGenerator.GetBytes(16));
        Save(NodeFile, made, NodeKeyFile, key);
    }

    private static X509Extension AlternativeNames(SortedSet<string> names)
    {
        SubjectAlternativeNameBuilder builder = new();
        foreach (string name in names)
        {
            if (IPAddress.TryParse(name, out IPAddress? address))
            {
                builder.AddIpAddress(address);
            }
            else
            {
                builder.AddDnsName(name);
            }
        }

        return builder.Build();
    }

    private static SortedSet<string> NamesOf(X509Certificate2 certificate)
    {
        SortedSet<string> names = new(StringComparer.Ordinal);
        IEnumerable<X509SubjectAlternativeNameExtension> extensions =
            certificate.Extensions.OfType<X509SubjectAlternativeNameExtension>();
        foreach (X509SubjectAlternativeNameExtension extension in extensions)
        {
            names.UnionWith(extension.EnumerateDnsNames());
            names.UnionWith(extension.EnumerateIPAddresses().Select(address => address.ToString()));
        }

        return names;
    }

    private bool IsFresh(X509Certificate2 certificate)
    {
        DateTime now = time.GetUtcNow().UtcDateTime;
        return certificate.NotBefore.ToUniversalTime() <= now
            && certificate.NotAfter.ToUniversalTime() - s_renewBefore > now;
    }

    private bool IsIssuedBy(X509Certificate2 certificate, X509Certificate2 authority)
    {
        using X509Chain chain = new();
        chain.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
        chain.ChainPolicy.CustomTrustStore.Add(authority);
        chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
        chain.ChainPolicy.VerificationTime = time.GetUtcNow().UtcDateTime;
        return chain.Build(certificate);
    }

    private X509Certificate2? TryLoad(string certificate, string key)
    {
        if (!File.Exists(PathOf(certificate)) || !File.Exists(PathOf(key)))
        {
            return null;
        }

        try
        {
            return X509Certificate2.CreateFromPemFile(PathOf(certificate), PathOf(key));
        }
        catch (Exception error) when (error is CryptographicException or ArgumentException)
        {
            // Half of a pair, from a start that was killed: recreated like a missing one.
            return null;
        }
    }

    private void Save(string certificateFile, X509Certificate2 certificate, string keyFile, ECDsa key)
    {
        StableFile.Write(PathOf(keyFile), Encoding.ASCII.GetBytes(key.ExportPkcs8PrivateKeyPem() + "\n"), secret: true);
        StableFile.Write(PathOf(certificateFile), Encoding.ASCII.GetBytes(certificate.ExportCertificatePem() + "\n"));
    }

    private string PathOf(string file) => Path.Combine(directory, file);
}
