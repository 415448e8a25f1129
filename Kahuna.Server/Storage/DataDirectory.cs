using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// The node's data directory: <c>LOCK</c> keeps a second process out, <c>FORMAT</c> has the version of the directory's
/// format, <c>log/</c> has the log (<see cref="LogExtentFile"/> lies beside it). Locked from opening to disposal; one
/// owner.
/// </summary>
internal sealed class DataDirectory : IDisposable
{
    /// <summary>The file with the version of the directory's format.</summary>
    public const string FormatName = "FORMAT";

    /// <summary>The directory with the log's segments.</summary>
    public const string LogName = "log";

    private const string LockName = "LOCK";
    private const string FormatText = "kahuna-data 2\n";
    private const int FormatBytesMax = 256;

    private readonly IDisposable _lock;

    private DataDirectory(string path, IDisposable held)
    {
        _lock = held;
        LogPath = Path.Combine(path, LogName);
    }

    /// <summary>The directory with the log's segments, as a path.</summary>
    public string LogPath { get; }

    /// <summary>Locks the directory and checks its format, or creates it.</summary>
    /// <exception cref="DataDirectoryRefusedException">Another process holds it, or its format is unknown.</exception>
    /// <exception cref="DiskException">It cannot be read or created.</exception>
    public static DataDirectory Open(IDisk disk, string path)
    {
        IDisposable held = Lock(disk, path);
        try
        {
            DataDirectory directory = new(path, held);
            directory.CheckFormat(disk, path);
            return directory;
        }
        catch
        {
            held.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Creates the directory if it is missing and locks it against other processes, without checking its content.
    /// </summary>
    /// <exception cref="DataDirectoryRefusedException">Another process holds it.</exception>
    /// <exception cref="DiskException">It cannot be created.</exception>
    public static IDisposable Lock(IDisk disk, string path)
    {
        disk.CreateDirectory(path);
        return disk.TryLock(Path.Combine(path, LockName)) ?? throw new DataDirectoryRefusedException(
            $"The data directory {path} is in use: another process holds its {LockName} file. Stop that process, "
                + "or choose another directory.");
    }

    public void Dispose() => _lock.Dispose();

    private void CheckFormat(IDisk disk, string path)
    {
        string file = Path.Combine(path, FormatName);
        if (disk.List(path).Contains(FormatName))
        {
            string found = ReadText(disk, file);
            if (found != FormatText)
            {
                throw new DataDirectoryRefusedException(
                    $"The data directory {path} has the format '{OneLine(found)}', and this version understands "
                    + $"'{OneLine(FormatText)}' only. Use the version that wrote it, or choose another directory. "
                    + $"If the file is damaged: {StorageException.WayOut}");
            }

            // Names that a killed process created may be in the system's memory only.
            disk.CreateDirectory(LogPath);
            disk.SyncDirectory(path);
            return;
        }

        disk.CreateDirectory(LogPath);
        if (disk.List(LogPath).Any(name => SegmentFiles.TryParse(name, out _)))
        {
            throw new DataDirectoryRefusedException(
                $"The data directory {path} holds a log but no {FormatName} file. Another program created it, or the "
                    + $"file was removed; restore the file, or choose another directory. {StorageException.WayOut}");
        }

        WriteFormat(disk, path, file);
    }

    private static void WriteFormat(IDisk disk, string path, string file)
    {
        string temporary = file + ".tmp";
        using (IDiskFile target = disk.Open(temporary, DiskFileMode.Empty))
        {
            target.Write(0, [Encoding.UTF8.GetBytes(FormatText)]);
            target.SyncData();
        }

        disk.Rename(temporary, file);
        disk.SyncDirectory(path);
    }

    private static string ReadText(IDisk disk, string file)
    {
        using IDiskFile source = disk.Open(file, DiskFileMode.Existing);
        byte[] bytes = new byte[FormatBytesMax];
        return Encoding.UTF8.GetString(bytes, 0, source.Read(0, bytes));
    }

    private static string OneLine(string text) =>
        new([.. text.TrimEnd('\n').Select(character => char.IsControl(character) ? '?' : character)]);
}
