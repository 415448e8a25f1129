using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// An open database: a thin cover of RocksDB's C interface with the method names of RocksDbSharp. Every error is a <see cref="RocksDbException"/> with RocksDB's text.
/// It is changed by taking in files only, so it needs neither RocksDB's log nor its tables in memory. Any thread; <see cref="SafeHandle.Dispose()"/> waits for
/// nothing, but iterators keep the database open until they end.
/// </summary>
internal sealed unsafe class RocksDatabase : NativeHandle
{
    private RocksDatabase(nint opened)
        : base(opened)
    {
    }

    /// <summary>Opens the database in a directory.</summary>
    /// <exception cref="RocksDbException">It cannot be opened: locked by another process, damaged, or there is no room.</exception>
    /// <exception cref="DllNotFoundException">There is no library (<see cref="RocksDbLibrary.IsAvailable"/>).</exception>
    public static RocksDatabase Open(DbOptions options, string path)
    {
        RemoveEmptyLogs(path);
        nint opened = RocksDbNative.Open(options, path, out nint error);
        RocksDbException.ThrowIf(error);
        return new RocksDatabase(opened);
    }

    /// <summary>The value of a key; null when there is none.</summary>
    public byte[]? Get(ReadOnlySpan<byte> key, ReadOptions options)
    {
        fixed (byte* start = key)
        {
            nint slice = RocksDbNative.GetPinned(this, options, start, (nuint)key.Length, out nint error);
            RocksDbException.ThrowIf(error);
            if (slice == 0)
            {
                return null;
            }

            byte* value = RocksDbNative.PinnedValue(slice, out nuint length);
            byte[] copy = new ReadOnlySpan<byte>(value, checked((int)length)).ToArray();
            RocksDbNative.DestroyPinned(slice);
            return copy;
        }
    }

    /// <summary>Takes in files, all or none, and returns when they are on stable storage. Of a key that several have, the last file's value counts.</summary>
    public void IngestExternalFiles(IReadOnlyList<string> files, IngestExternalFileOptions options)
    {
        nint[] paths = new nint[files.Count];
        try
        {
            for (int i = 0; i < paths.Length; i++)
            {
                paths[i] = Marshal.StringToCoTaskMemUTF8(files[i]);
            }

            fixed (nint* list = paths)
            {
                RocksDbNative.IngestExternalFile(this, list, (nuint)paths.Length, options, out nint error);
                RocksDbException.ThrowIf(error);
            }
        }
        finally
        {
            foreach (nint path in paths)
            {
                Marshal.FreeCoTaskMem(path);
            }
        }
    }

    public Iterator NewIterator(ReadOptions options) => new(this, options);

    /// <summary>A property such as "rocksdb.total-sst-files-size"; null when RocksDB does not know it.</summary>
    public string? GetProperty(string name)
    {
        nint text = RocksDbNative.PropertyValue(this, name);
        if (text == 0)
        {
            return null;
        }

        string? value = Marshal.PtrToStringUTF8(text);
        RocksDbNative.Free(text);
        return value;
    }

    /// <summary>Each opening begins a log and removes those before it only at the next flush, which never comes here: a file would be left behind each time.</summary>
    private static void RemoveEmptyLogs(string path)
    {
        try
        {
            foreach (FileInfo log in new DirectoryInfo(path).EnumerateFiles("*.log"))
            {
                if (log.Length == 0)
                {
                    log.Delete();
                }
            }
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            // There is no such directory yet, or opening it will say what is wrong with it.
        }
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.Close(handle);
        return true;
    }
}
