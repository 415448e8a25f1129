using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Log and state in a data directory, without a look into them. Only by who holds the directory. Stateless.</summary>
internal static class DirectoryContent
{
    /// <summary>Size of the files in and below a part of the data directory; 0 when it is missing.</summary>
    public static long BytesOf(string directory, string part)
    {
        DirectoryInfo place = new(Path.Combine(directory, part));
        return place.Exists ? place.EnumerateFiles("*", SearchOption.AllDirectories).Sum(file => file.Length) : 0;
    }

    /// <summary>Whether there is a log, or what is recorded about one.</summary>
    public static bool HasLog(string directory)
    {
        DirectoryInfo log = new(Path.Combine(directory, DataDirectory.LogName));
        return File.Exists(Path.Combine(directory, LogExtentFile.FileName))
            || (log.Exists && log.EnumerateFiles().Any(static file => SegmentFiles.TryParse(file.Name, out _)));
    }

    /// <summary>Removes log and state durably. The identity and what is known of other nodes stay. What was removed before is no error.</summary>
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

        // After the log, because a log without them would be damaged or somebody else's.
        File.Delete(Path.Combine(directory, LogExtentFile.FileName));
        File.Delete(Path.Combine(directory, DataDirectory.FormatName));
        disk.SyncDirectory(directory);
    }

    /// <summary>The directory itself stays: it may be a link to another disk.</summary>
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
