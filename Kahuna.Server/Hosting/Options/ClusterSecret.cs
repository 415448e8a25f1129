using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Reads the file with the cluster's secrets. Stateless.</summary>
internal static class ClusterSecret
{
    /// <summary>128 bits as text or bytes, which cannot be guessed.</summary>
    public const int BytesMin = 16;

    /// <summary>Of the file.</summary>
    public const int BytesMax = 4096;

    /// <summary>
    /// The file's lines without white space at their ends. Empty lines do not count, so that a newline from a text
    /// editor does not matter.
    /// </summary>
    /// <returns>One secret, or two of which the first one is in use.</returns>
    /// <exception cref="InvalidDataException">The file cannot be read, or its content is too short or too long; the
    /// message is one line.</exception>
    public static byte[][] Read(string path)
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

        byte[][] secrets = Lines(content);
        byte[] shortest = secrets.MinBy(static secret => secret.Length) ?? [];
        return shortest.Length < BytesMin ? throw new InvalidDataException(
                $"The cluster secret in {path} has {shortest.Length} bytes; it needs at least {BytesMin}. Make "
                    + $"one with: openssl rand -hex 32")
            : secrets.Length > ClusterSecrets.Max ? throw new InvalidDataException(
                $"{path} has {secrets.Length} lines; it may have {ClusterSecrets.Max}, each with a secret, of which "
                    + $"the first one is in use.")
            : secrets;
    }

    private static byte[][] Lines(ReadOnlySpan<byte> content)
    {
        List<byte[]> lines = [];
        foreach (Range range in content.Split((byte)'\n'))
        {
            byte[] line = content[range].Trim(" \r\t"u8).ToArray();
            if (line.Length > 0)
            {
                lines.Add(line);
            }
        }

        return [.. lines];
    }
}
