using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// The authorities that issue client certificates, read again when their file changes; warns before they expire. Owned
/// by the node, whose timer calls <see cref="Check"/>, one call at a time; <see cref="Current"/> from any thread.
/// </summary>
internal sealed class ClientAuthorities
{
    /// <summary>What such a certificate is called in the log and in <c>/status</c>.</summary>
    public const string Part = "The authority of client certificates";

    private readonly string _path;
    private readonly TimeProvider _time;
    private readonly ILogger _log;
    private readonly ExpiryWarnings _warnings;
    private byte[] _content;

    /// <summary>The content that was refused last; null: none; empty: the file was not readable.</summary>
    private byte[]? _refused;
    private volatile X509Certificate2Collection _current;

    /// <summary>Reads the file.</summary>
    /// <param name="path">PEM file with certificates.</param>
    /// <param name="time">The clock.</param>
    /// <param name="log">Receives the events.</param>
    /// <exception cref="CertificateException">The file is unusable; the message is one line.</exception>
    public ClientAuthorities(string path, TimeProvider time, ILogger log)
    {
        (_path, _time, _log) = (path, time, log);
        _warnings = new ExpiryWarnings("clients with certificates of this authority", time, log);
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

    /// <summary>
    /// Takes over a changed file, and warns if it is time to. An unusable file is logged once, and changes nothing.
    /// </summary>
    public void Check()
    {
        byte[] content = [];
        try
        {
            content = File.ReadAllBytes(_path);
            if (content.AsSpan().SequenceEqual(_content))
            {
                _refused = null;
            }
            else if (_refused is null || !content.AsSpan().SequenceEqual(_refused))
            {
                _current = Parse(content);
                (_content, _refused) = (content, null);
                _warnings.BeginAgain();
                _log.ClientAuthoritiesReloaded(_current.Count);
            }
        }
        catch (Exception error) when (error is CertificateException or IOException or UnauthorizedAccessException)
        {
            if (_refused is null || !content.AsSpan().SequenceEqual(_refused))
            {
                _log.ClientAuthoritiesNotReloaded(OneLine.Of(error.Message));
            }

            _refused = content;
        }

        _warnings.Look(Part, CertificateChain.FirstToEnd(_current, _time.GetUtcNow().UtcDateTime));
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
