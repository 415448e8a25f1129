using System.Runtime.InteropServices;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>A file system in memory of a given size, mounted for one test. Needs the right to mount.</summary>
internal sealed partial class SmallDisk : IDisposable
{
    private const int Detach = 2;

    private SmallDisk(string path) => Path = path;

    public string Path { get; }

    /// <summary>Null when this process may not mount.</summary>
    public static SmallDisk? TryMount(long bytes)
    {
        string path = Directory.CreateTempSubdirectory("kahuna-small-").FullName;
        if (Mount("tmpfs", path, "tmpfs", 0, $"size={bytes}") == 0)
        {
            return new SmallDisk(path);
        }

        Directory.Delete(path);
        return null;
    }

    /// <summary>Fills it up but for some bytes; disposal makes room again.</summary>
    public IDisposable Fill(long bytesLeft)
    {
        string filler = System.IO.Path.Combine(Path, "filler");
        using FileStream file = new(filler, FileMode.Create, FileAccess.Write, FileShare.None, bufferSize: 0);
        byte[] page = new byte[4096];
        try
        {
            while (true)
            {
                file.Write(page);
            }
        }
        catch (IOException)
        {
            file.SetLength(Math.Max(0, file.Length - bytesLeft));
        }

        return new Filler(filler);
    }

    public void Dispose()
    {
        _ = Unmount(Path, Detach);
        Directory.Delete(Path);
    }

    [LibraryImport("libc", EntryPoint = "mount", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Mount(string source, string target, string type, ulong flags, string options);

    [LibraryImport("libc", EntryPoint = "umount2", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Unmount(string target, int flags);

    private sealed class Filler(string path) : IDisposable
    {
        public void Dispose() => File.Delete(path);
    }
}
