using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// The authorities that issue client certificates, read again when their file changes. Owned by the node, whose timer
/// calls <see cref="Check"/>, one call at a time; <see cref="Current"/> from any thread.
/// </summary>
internal sealed class ClientAuthorities
{
    private readonly string _path;
    private readonly ILogger _log;
    private byte[] _content;
    private byte[] _refused = [];
    private volatile X509Certificate2Collection _current;

    /// <summary>Reads the file.</summary>
    /// <param name="path">PEM file with certificates.</param>
    /// <param name="log">Receives the events.</param>
    /// <exception cref="CertificateException">The file is unusable; the message is one line.</exception>
    public ClientAuthorities(string path, ILogger log)
    {
        (_path, _log) = (path, log);
        try
        {
            _content = File.ReadAllBytes(path);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new CertificateException(
                $"Cannot read the authorities of client certificates {path}: {OneLine.Of(error.Message)}", error);
        }

        _current = Parse(_content);
    }

    /// <summary>The authorities; replaced when the file changes.</summary>
    public X509Certificate2Collection Current => _current;

    /// <summary>Takes over a changed file. An unusable one is logged once, and changes nothing.</summary>
    public void Check()
    {
        byte[] content = [];
        try
        {
            content = File.ReadAllBytes(_path);
            if (!content.AsSpan().SequenceEqual(_content) && !content.AsSpan().SequenceEqual(_refused))
            {
                _current = Parse(content);
                _content = content;
                _log.ClientAuthoritiesReloaded(_current.Count);
            }
        }
        catch (Exception error) when (error is CertificateException or IOException or UnauthorizedAccessException)
        {
            _refused = content;
            _log.ClientAuthoritiesNotReloaded(OneLine.Of(error.Message));
        }
    }

    private X509Certificate2Collection Parse(byte[] content)
    {
        try
        {
            X509Certificate2Collection authorities = [];
            authorities.ImportFromPem(System.Text.Encoding.ASCII.GetString(content));
            return authorities.Count > 0
                ? authorities
                : throw new CertificateException($"{_path} holds no PEM certificate.");
        }
        catch (CryptographicException error)
        {
            throw new CertificateException(
                $"Cannot read the authorities of client certificates {_path}: {OneLine.Of(error.Message)}", error);
        }
    }
}
