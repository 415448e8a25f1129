using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;

namespace Kahuna.Client.Connection;

/// <summary>
/// A file of PEM certificates that may be replaced while the client runs. It compares contents and not times, because a
/// mounted secret changes by moving a link. Any thread.
/// </summary>
internal sealed class CertificateFile(string path)
{
    private readonly Lock _lock = new();
    private X509Certificate2Collection? _certificates;
    private byte[] _content = [];

    public string Path => path;

    /// <summary>
    /// The certificates in the file. Reads the file, a few kilobytes, once for each handshake. While the file cannot be
    /// read, as in the middle of a replacement, it returns the certificates read before.
    /// </summary>
    /// <exception cref="IOException">The file cannot be read and never could.</exception>
    public X509Certificate2Collection Read()
    {
        lock (_lock)
        {
            try
            {
                byte[] content = File.ReadAllBytes(path);
                if (_certificates is null || !content.AsSpan().SequenceEqual(_content))
                {
                    _certificates = Parse(content);
                    _content = content;
                }
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException or CryptographicException)
            {
                // The file is read again at the next handshake.
                if (_certificates is null)
                {
                    throw new IOException($"The certificate file \"{path}\" cannot be used: {e.Message}", e);
                }
            }

            return _certificates;
        }
    }

    private static X509Certificate2Collection Parse(byte[] content)
    {
        X509Certificate2Collection certificates = [];
        certificates.ImportFromPem(Encoding.UTF8.GetString(content));
        return certificates.Count > 0 ? certificates : throw new IOException("it holds no certificate.");
    }
}
