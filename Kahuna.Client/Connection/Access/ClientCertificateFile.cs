using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Client.Connection.Access;

/// <summary>
/// The files of a client certificate and its key, which may be replaced while the client runs. Compares contents and
/// not times, because a mounted secret changes by moving a link. Any thread.
/// </summary>
/// <param name="certificatePath">PEM, the certificate first and then its authorities; or PFX.</param>
/// <param name="keyPath">PEM; null: the key is in the same file.</param>
/// <param name="password">Opens a PFX file or an encrypted key; null for none.</param>
internal sealed class ClientCertificateFile(string certificatePath, string? keyPath, string? password)
{
    private readonly Lock _lock = new();
    private SslStreamCertificateContext? _context;
    private byte[] _certificate = [];
    private byte[] _key = [];

    /// <summary>
    /// What a TLS handshake shows; the same object until a file has changed. While the files cannot be used, as in the
    /// middle of a replacement, it returns what was read before.
    /// </summary>
    /// <exception cref="IOException">The files cannot be used and never could; the message names them.</exception>
    public SslStreamCertificateContext Read()
    {
        lock (_lock)
        {
            try
            {
                byte[] certificate = File.ReadAllBytes(certificatePath);
                byte[] key = keyPath is null ? certificate : File.ReadAllBytes(keyPath);
                if (_context is null || !certificate.AsSpan().SequenceEqual(_certificate)
                    || !key.AsSpan().SequenceEqual(_key))
                {
                    _context = Parse(certificate, key);
                    (_certificate, _key) = (certificate, key);
                }
            }
            catch (Exception failure) when (
                failure is IOException or UnauthorizedAccessException or CryptographicException or ArgumentException)
            {
                // The files are read again when the next stream is opened.
                if (_context is null)
                {
                    string key = keyPath is null ? "" : $" with the key \"{keyPath}\"";
                    throw new IOException(
                        $"the client certificate \"{certificatePath}\"{key} cannot be used: "
                            + failure.Message.TrimEnd('.'),
                        failure);
                }
            }

            return _context;
        }
    }

    private SslStreamCertificateContext Parse(byte[] certificate, byte[] key)
    {
        X509Certificate2Collection all = [];
        X509Certificate2 own;
        if (certificate.AsSpan().IndexOf("-----BEGIN"u8) >= 0)
        {
            string pem = System.Text.Encoding.UTF8.GetString(certificate);
            string keyPem = System.Text.Encoding.UTF8.GetString(key);
            all.ImportFromPem(pem);
            own = password is null
                ? X509Certificate2.CreateFromPem(pem, keyPem)
                : X509Certificate2.CreateFromEncryptedPem(pem, keyPem, password);
        }
        else
        {
            all = X509CertificateLoader.LoadPkcs12Collection(certificate, password);
            own = all.FirstOrDefault(static candidate => candidate.HasPrivateKey)
                ?? throw new CryptographicException("the file has no private key");
        }

        if (OperatingSystem.IsWindows())
        {
            // SChannel uses no key that was made in memory.
            own = X509CertificateLoader.LoadPkcs12(own.Export(X509ContentType.Pkcs12), null);
        }

        return SslStreamCertificateContext.Create(own, all, offline: true);
    }
}
