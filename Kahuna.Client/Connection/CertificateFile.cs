using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Client.Connection;

/// <summary>A file of PEM certificates that may be replaced while the client runs. Any thread.</summary>
internal sealed class CertificateFile(string path)
{
    private readonly Lock _lock = new();
    private X509Certificate2Collection? _certificates;
    private (DateTime WrittenUtc, long Bytes) _version;

    public string Path => path;

    /// <summary>
    /// The certificates as the file has them now. While it cannot be read, as in the middle of a replacement, those
    /// from before.
    /// </summary>
    /// <exception cref="IOException">It cannot be read, and never could.</exception>
    public X509Certificate2Collection Read()
    {
        lock (_lock)
        {
            try
            {
                FileInfo file = new(path);
                (DateTime, long) version = (file.LastWriteTimeUtc, file.Length);
                if (_certificates is null || version != _version)
                {
                    _certificates = Load();
                    _version = version;
                }
            }
            catch (IOException) when (_certificates is not null)
            {
                // It is looked at again at the next handshake.
            }

            return _certificates;
        }
    }

    private X509Certificate2Collection Load()
    {
        try
        {
            X509Certificate2Collection certificates = [];
            certificates.ImportFromPemFile(path);
            return certificates.Count > 0
                ? certificates
                : throw new IOException($"The certificate file \"{path}\" holds no certificate.");
        }
        catch (Exception e) when (e is CryptographicException or UnauthorizedAccessException)
        {
            throw new IOException($"The certificate file \"{path}\" cannot be read: {e.Message}", e);
        }
    }
}
