using Kahuna.Server.Api.Access;
using Kahuna.Server.Hosting.Options;
using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// The keys of an issuer from a file, read again when it changes. Owned by the node, whose timer calls
/// <see cref="Check"/>, one call at a time; the rest from any thread.
/// </summary>
internal sealed class JwtKeyFile : IJwtKeys
{
    private readonly string _path;
    private readonly ILogger _log;
    private byte[] _content;
    private byte[]? _refused;
    private volatile IReadOnlyList<SecurityKey> _current;

    /// <summary>Reads the file.</summary>
    /// <exception cref="InvalidDataException">It is unusable; the message is one line.</exception>
    public JwtKeyFile(string path, ILogger log)
    {
        (_path, _log) = (path, log);
        try
        {
            _content = File.ReadAllBytes(path);
            _current = JwtKeySet.Read(_content);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or InvalidDataException)
        {
            throw new InvalidDataException(
                $"Cannot read the keys of JSON Web Tokens {path}: {OneLine.Of(error.Message)}", error);
        }
    }

    public IReadOnlyList<SecurityKey> Current => _current;

    /// <summary>The file is looked at by the timer; a token does not make it so.</summary>
    public ValueTask<bool> RefreshAsync(CancellationToken ct) => new(false);

    /// <summary>Takes over a changed file. An unusable one is logged once, and changes nothing.</summary>
    public void Check()
    {
        byte[] content = [];
        try
        {
            content = File.ReadAllBytes(_path);
            if (!content.AsSpan().SequenceEqual(_content) && !content.AsSpan().SequenceEqual(_refused))
            {
                _current = JwtKeySet.Read(content);
                (_content, _refused) = (content, null);
                _log.JwtKeysRead(_current.Count, _path);
            }
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or InvalidDataException)
        {
            if (_refused is null || !content.AsSpan().SequenceEqual(_refused))
            {
                _refused = content;
                _log.JwtKeysNotRead(_path, OneLine.Of(error.Message));
            }
        }
    }
}
