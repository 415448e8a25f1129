using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Log and state in a data directory, handled without reading them. The caller must hold the directory. Stateless.
/// </summary>
internal static class DirectoryContent
{
    /// <summary>Size of all files below a part of the data directory; 0 if it is missing.</summary>
    public static long BytesOf(string directory, string part)
    {
        DirectoryInfo place = new(Path.Combine(directory, part));
        return place.Exists ? place.EnumerateFiles("*", SearchOption.AllDirectories).Sum(file => file.Length) : 0;
    }

    /// <summary>Whether there is a log, or a record of one.</summary>
    public static bool HasLog(string directory)
    {
        DirectoryInfo log = new(Path.Combine(directory, DataDirectory.LogName));
        return File.Exists(Path.Combine(directory, LogExtentFile.FileName))
            || (log.Exists && log.EnumerateFiles().Any(static file => SegmentFiles.TryParse(file.Name, out _)));
    }

    /// <summary>
    /// Removes log and state durably; keeps the identity and the record of other nodes. Parts that are missing already
    /// are no error.
    /// </summary>
    public static void Drop(string directory)
    {
        IDisk disk = LocalDisk.Shared;
        foreach (string part in new[] { DataDirectory.LogName, DataDirectoryIdentity.StateDirectoryName })
        {
            DirectoryInfo place = new(Path.Combine(directory, part));
            if (place.Exists)
            {
                Empty(place);
                disk.SyncDirectory(place.FullName);
            }
        }

        // After the log: a log without them would be damaged or foreign.
        File.Delete(Path.Combine(directory, LogExtentFile.FileName));
        File.Delete(Path.Combine(directory, DataDirectory.FormatName));
        disk.SyncDirectory(directory);
    }

    /// <summary>Empties a directory but keeps it, because it may be a link to another disk.</summary>
    private static void Empty(DirectoryInfo place)
    {
        foreach (FileSystemInfo entry in place.EnumerateFileSystemInfos())
        {
            if (entry is DirectoryInfo { LinkTarget: null } inner)
            {
                inner.Delete(recursive: true);
            }
            else
            {
                entry.Delete();
            }
        }
    }
}
