namespace Kahuna.Server.Hosting;

/// <summary>
/// Appends to a file that is renamed when it is full: <c>name</c> is the newest, <c>name.1</c> the one before it.
/// Owned by the audit log, whose writer uses it; not thread-safe.
/// </summary>
/// <param name="path">Of the newest file.</param>
/// <param name="fileBytes">Size from which on a new file is begun.</param>
/// <param name="files">Files that are kept, the newest included.</param>
internal sealed class AuditFile(string path, long fileBytes, int files) : IDisposable
{
    private const UnixFileMode Mode = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.GroupRead;

    private FileStream? _file;
    private bool _isTorn;

    /// <summary>Appends a line.</summary>
    /// <exception cref="IOException">It was not written, or in part; the next one begins a new line.</exception>
    /// <exception cref="UnauthorizedAccessException">The file cannot be opened.</exception>
    public void Append(ReadOnlyMemory<byte> line)
    {
        try
        {
            _file ??= Open();
            if (_file.Length >= fileBytes)
            {
                Rotate();
            }

            if (_isTorn)
            {
                _file!.WriteByte((byte)'\n');
            }

            _file!.Write(line.Span);
            _isTorn = false;
        }
        catch
        {
            _isTorn = true;
            Dispose();
            throw;
        }
    }

    public void Dispose()
    {
        _file?.Dispose();
        _file = null;
    }

    private void Rotate()
    {
        Dispose();
        for (int i = files - 1; i >= 1; i--)
        {
            string from = i == 1 ? path : Name(i - 1);
            if (File.Exists(from))
            {
                File.Move(from, Name(i), overwrite: true);
            }
        }

        if (files == 1)
        {
            File.Delete(path);
        }

        _file = Open();
    }

    private string Name(int number) =>
        string.Create(System.Globalization.CultureInfo.InvariantCulture, $"{path}.{number}");

    private FileStream Open()
    {
        // Without a buffer: a line is in the file, or the caller hears that it is not.
        FileStreamOptions options = new()
        {
            Mode = FileMode.Append,
            Access = FileAccess.Write,
            Share = FileShare.ReadWrite | FileShare.Delete,
            BufferSize = 0,
        };
        if (!OperatingSystem.IsWindows())
        {
            options.UnixCreateMode = Mode;
        }

        return new FileStream(path, options);
    }
}
