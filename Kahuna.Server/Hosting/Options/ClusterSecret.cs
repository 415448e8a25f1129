namespace Kahuna.Server.Hosting.Options;

/// <summary>Reads the file with the cluster's secret. Stateless.</summary>
internal static class ClusterSecret
{
    /// <summary>128 bits as text or bytes, which cannot be guessed.</summary>
    public const int BytesMin = 16;

    public const int BytesMax = 4096;

    /// <summary>
    /// The file's bytes without trailing white space, so that a newline from a text editor does not matter.
    /// </summary>
    /// <exception cref="InvalidDataException">The file cannot be read, or its content is too short or too long; the
    /// message is one line.</exception>
    public static byte[] Read(string path)
    {
        byte[] content;
        try
        {
            if (new FileInfo(path).Length > BytesMax)
            {
                throw new InvalidDataException($"The cluster secret in {path} is longer than {BytesMax} bytes.");
            }

            content = File.ReadAllBytes(path);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new InvalidDataException(
                $"Cannot read the cluster secret {path}: {OneLine.Of(error.Message)}", error);
        }

        byte[] secret = content.AsSpan().TrimEnd(" \r\n\t"u8).ToArray();
        return secret.Length >= BytesMin
            ? secret
            : throw new InvalidDataException(
                $"The cluster secret in {path} has {secret.Length} bytes; it needs at least {BytesMin}. Make "
                    + $"one with: openssl rand -hex 32");
    }
}
