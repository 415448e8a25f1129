using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Hosting.Administration;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The token with which <c>/metrics</c> may be read, and nothing else. It is read again when its file changes, and
/// compared in constant time. Owned by the node, whose timer calls <see cref="Check"/>, one call at a time;
/// <see cref="Matches"/> from any thread.
/// </summary>
internal sealed class MetricsToken
{
    private const int CharactersMin = 16;

    private readonly string _file;
    private readonly ILogger _log;
    private byte[] _hash;
    private string? _reported;

    /// <summary>Reads the token.</summary>
    /// <param name="file">Its file.</param>
    /// <param name="log">Receives the events.</param>
    /// <exception cref="InvalidDataException">The file is unusable; the message is one line.</exception>
    public MetricsToken(string file, ILogger log)
    {
        _file = file;
        _log = log;
        _hash = Read(file);
    }

    /// <summary>It is this token.</summary>
    public bool Matches(string given) => CryptographicOperations.FixedTimeEquals(
        SHA256.HashData(Encoding.UTF8.GetBytes(given)), Volatile.Read(ref _hash));

    /// <summary>Takes over a changed file. An unusable one is logged once, and changes nothing.</summary>
    public void Check()
    {
        try
        {
            byte[] read = Read(_file);
            _reported = null;
            if (!read.AsSpan().SequenceEqual(_hash))
            {
                Volatile.Write(ref _hash, read);
                _log.MetricsTokenReloaded();
            }
        }
        catch (InvalidDataException error)
        {
            if (_reported != error.Message)
            {
                _reported = error.Message;
                _log.MetricsTokenNotReloaded(error.Message);
            }
        }
    }

    private static byte[] Read(string file)
    {
        string token = BootstrapFile.ReadSecret(file, "file of the metrics token").Trim();
        return token.Length < CharactersMin || token.Any(static letter => letter is < '!' or > '~')
            ? throw new InvalidDataException(
                $"The file of the metrics token {file} must have one line with a token of at least {CharactersMin} "
                    + "characters, without spaces. Make one with: openssl rand -hex 32")
            : SHA256.HashData(Encoding.UTF8.GetBytes(token));
    }
}
