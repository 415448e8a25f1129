using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Reads the cluster's secrets, and reads them again when their file changes. A change counts when two checks have
/// found the same, so that a file that is just being written is not taken for another secret. Owned by the node, whose
/// timer calls <see cref="Check"/>; one call at a time.
/// </summary>
internal sealed class ClusterSecretWatch
{
    private readonly string? _file;
    private readonly ILogger _log;
    private byte[][]? _found;
    private string? _reported;

    /// <summary>Reads the secrets.</summary>
    /// <param name="file">The file; null: a standalone node has none.</param>
    /// <param name="log">Receives the events.</param>
    /// <exception cref="InvalidDataException">The file is unusable; the message is one line.</exception>
    public ClusterSecretWatch(string? file, ILogger log)
    {
        _file = file;
        _log = log;
        Secrets = new ClusterSecrets(file is null ? [] : ClusterSecret.Read(file));
    }

    /// <summary>The secrets; replaced when the file changes.</summary>
    public ClusterSecrets Secrets { get; }

    /// <summary>Takes over a changed file. An unusable one is logged once, and changes nothing.</summary>
    public void Check()
    {
        if (_file is null)
        {
            return;
        }

        try
        {
            byte[][] read = ClusterSecret.Read(_file);
            if (AreEqual(read, Secrets.Accepted))
            {
                (_found, _reported) = (null, null);
            }
            else if (_found is null || !AreEqual(read, _found))
            {
                _found = read;
            }
            else
            {
                Secrets.Replace(read);
                (_found, _reported) = (null, null);
                _log.SecretReloaded(read.Length);
            }
        }
        catch (InvalidDataException error)
        {
            _found = null;
            if (_reported != error.Message)
            {
                _reported = error.Message;
                _log.SecretNotReloaded(error.Message);
            }
        }
    }

    private static bool AreEqual(IReadOnlyList<byte[]> some, IReadOnlyList<byte[]> others) =>
        some.Count == others.Count
            && some.Zip(others).All(static pair => pair.First.AsSpan().SequenceEqual(pair.Second));
}
