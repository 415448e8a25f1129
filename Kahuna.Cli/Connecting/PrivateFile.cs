namespace Kahuna.Cli.Connecting;

/// <summary>Files that only their owner may read. Static.</summary>
internal static class PrivateFile
{
    private const UnixFileMode Owner = UnixFileMode.UserRead | UnixFileMode.UserWrite;

    /// <summary>Writes a file beside the old one and renames it.</summary>
    /// <param name="path">The file; its directory is made.</param>
    /// <param name="content">All of it.</param>
    public static void Replace(string path, ReadOnlySpan<byte> content)
    {
        string full = Path.GetFullPath(path);
        string next = $"{full}.{Environment.ProcessId}.next";
        MakeDirectory(Path.GetDirectoryName(full)!);
        File.Delete(next);
        using (FileStream file = new(next, Options(FileMode.CreateNew)))
        {
            file.Write(content);
            file.Flush(flushToDisk: true);
        }

        File.Move(next, full, overwrite: true);
    }

    /// <summary>Writes a file that must not be there.</summary>
    /// <exception cref="IOException">It is there, or cannot be written.</exception>
    public static void Create(string path, ReadOnlySpan<byte> content)
    {
        using FileStream file = new(path, Options(FileMode.CreateNew));
        file.Write(content);
    }

    /// <summary>Adds to the end of a file, which is made when it is not there.</summary>
    /// <exception cref="IOException">It cannot be written.</exception>
    public static void Append(string path, ReadOnlySpan<byte> content)
    {
        using FileStream file = new(path, Options(FileMode.Append));
        file.Write(content);
    }

    private static void MakeDirectory(string path)
    {
        if (OperatingSystem.IsWindows())
        {
            Directory.CreateDirectory(path);
            return;
        }

        Directory.CreateDirectory(path, Owner | UnixFileMode.UserExecute);
    }

    private static FileStreamOptions Options(FileMode mode)
    {
        FileStreamOptions options = new() { Mode = mode, Access = FileAccess.Write };
        if (!OperatingSystem.IsWindows())
        {
            options.UnixCreateMode = Owner;
        }

        return options;
    }
}
