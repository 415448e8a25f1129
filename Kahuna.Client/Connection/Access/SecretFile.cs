using System.Text;

namespace Kahuna.Client.Connection.Access;

/// <summary>
/// A file whose only line is a password or a token. Stateless; any thread. No error repeats its content.
/// </summary>
internal static class SecretFile
{
    private const int BytesMax = 32 * 1024;

    /// <summary>The line, without its end.</summary>
    /// <exception cref="IOException">
    /// The file cannot be read, is empty or too large, or has more than one line; the message names it.
    /// </exception>
    public static string Read(string path)
    {
        byte[] content;
        try
        {
            using FileStream file = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            content = new byte[BytesMax + 1];
            content = content[..file.ReadAtLeast(content, content.Length, throwOnEndOfStream: false)];
        }
        catch (Exception failure) when (failure is UnauthorizedAccessException or IOException)
        {
            throw new IOException(
                failure is FileNotFoundException or DirectoryNotFoundException
                    ? $"the file \"{path}\" does not exist"
                    : $"the file \"{path}\" cannot be read: {failure.Message.TrimEnd('.')}",
                failure);
        }

        string line = Encoding.UTF8.GetString(content);
        line = line.EndsWith('\n') ? line[..^1] : line;
        line = line.EndsWith('\r') ? line[..^1] : line;
        return content.Length > BytesMax ? throw new IOException($"the file \"{path}\" is larger than 32 KiB")
            : line.AsSpan().Trim().IsEmpty ? throw new IOException($"the file \"{path}\" is empty")
            : line.AsSpan().ContainsAny('\r', '\n')
                ? throw new IOException($"the file \"{path}\" has more than one line")
            : line;
    }

    /// <summary>Other users of the machine may read the file. False where that cannot be said.</summary>
    public static bool IsReadableByOthers(string path) =>
        !OperatingSystem.IsWindows()
            && File.Exists(path)
            && (File.GetUnixFileMode(path) & (UnixFileMode.GroupRead | UnixFileMode.OtherRead)) != 0;
}
