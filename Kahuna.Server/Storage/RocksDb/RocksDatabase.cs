using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// An open database: a thin wrapper of RocksDB's C interface with the method names of RocksDbSharp. Every error is a
/// <see cref="RocksDbException"/> with RocksDB's text. It changes only by ingesting files, so it needs neither
/// RocksDB's log nor memtables. Any thread. <see cref="SafeHandle.Dispose()"/> does not wait; iterators keep the
/// database open until they end.
/// </summary>
internal sealed unsafe class RocksDatabase : NativeHandle
{
    private const string DefaultFamily = "default";

    private readonly Dictionary<string, ColumnFamily> _families = [];
    private volatile bool _hasDropped;

    private RocksDatabase(nint opened)
        : base(opened)
    {
    }

    public IReadOnlyCollection<ColumnFamily> ColumnFamilies => _families.Values;

    /// <summary>Opens the database in a directory, with all its column families.</summary>
    /// <exception cref="RocksDbException">It cannot be opened: locked by another process, damaged, or the disk is
    /// full.</exception>
    /// <exception cref="DllNotFoundException">There is no library
    /// (<see cref="RocksDbLibrary.IsAvailable"/>).</exception>
    public static RocksDatabase Open(DbOptions options, string path)
    {
        RemoveEmptyLogs(path);
        string[] names = File.Exists(Path.Combine(path, "CURRENT"))
            ? ListColumnFamilies(options, path)
            : [DefaultFamily];
        nint[] families = new nint[names.Length];
        nint[] familyOptions = new nint[names.Length];
        Array.Fill(familyOptions, options.DangerousGetHandle());
        nint opened = 0;
        WithTexts(names, (list, count) =>
        {
            fixed (nint* familyList = families, optionList = familyOptions)
            {
                opened = RocksDbNative.OpenColumnFamilies(
                    options, path, count, (nint*)list, optionList, familyList, out nint error);
                RocksDbException.ThrowIf(error);
            }
        });
        RocksDatabase database = new(opened);
        for (int i = 0; i < names.Length; i++)
        {
            database._families.Add(names[i], new ColumnFamily(database, names[i], families[i]));
        }

        return database;
    }

    /// <summary>The names of a database's column families.</summary>
    public static string[] ListColumnFamilies(DbOptions options, string path)
    {
        nint* list = RocksDbNative.ListColumnFamilies(options, path, out nuint count, out nint error);
        RocksDbException.ThrowIf(error);
        string[] names = new string[(int)count];
        for (int i = 0; i < names.Length; i++)
        {
            names[i] = Marshal.PtrToStringUTF8(list[i])!;
        }

        RocksDbNative.DestroyColumnFamilyList(list, count);
        return names;
    }

    public ColumnFamily CreateColumnFamily(DbOptions options, string name)
    {
        nint made = RocksDbNative.CreateColumnFamily(this, options, name, out nint error);
        RocksDbException.ThrowIf(error);
        ColumnFamily family = new(this, name, made);
        _families.Add(name, family);
        return family;
    }

    /// <summary>
    /// Drops a column family with everything in it, on stable storage when it returns. Open iterators on it stay valid.
    /// </summary>
    public void DropColumnFamily(ColumnFamily family)
    {
        RocksDbNative.DropColumnFamily(this, family, out nint error);
        RocksDbException.ThrowIf(error);
        _families.Remove(family.Name);
        family.Dispose();
        _hasDropped = true;
    }

    /// <summary>
    /// Makes RocksDB remove obsolete files: those of a family that was dropped under an iterator stay when the iterator
    /// ends. The next opening removes the rest.
    /// </summary>
    public void RemoveUnusedFiles()
    {
        if (!_hasDropped || IsClosed)
        {
            return;
        }

        try
        {
            RocksDbNative.DisableFileDeletions(this, out nint error);
            RocksDbException.ThrowIf(error);
            RocksDbNative.EnableFileDeletions(this, out error);
            RocksDbException.ThrowIf(error);
        }
        catch (RocksDbException)
        {
            // No stored data depends on it.
        }
    }

    /// <summary>The value of a key; null if there is none.</summary>
    public byte[]? Get(ReadOnlySpan<byte> key, ReadOptions options, ColumnFamily? family = null)
    {
        fixed (byte* start = key)
        {
            nint slice = RocksDbNative.GetPinned(
                this, options, family ?? Default, start, (nuint)key.Length, out nint error);
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

    /// <summary>
    /// Ingests files, all or none, and returns when they are on stable storage. For a key in several files, the last
    /// file wins.
    /// </summary>
    public void IngestExternalFiles(
        IReadOnlyList<string> files, IngestExternalFileOptions options, ColumnFamily? family = null) =>
        WithTexts(files, (list, count) =>
        {
            ColumnFamily target = family ?? Default;
            RocksDbNative.IngestExternalFile(this, target, (nint*)list, (nuint)count, options, out nint error);
            RocksDbException.ThrowIf(error);
        });

    public Iterator NewIterator(ReadOptions options, ColumnFamily? family = null) =>
        new(this, family ?? Default, options);

    /// <summary>A property such as "rocksdb.total-sst-files-size"; null if unknown.</summary>
    public string? GetProperty(string name, ColumnFamily? family = null)
    {
        nint text = RocksDbNative.PropertyValue(this, family ?? Default, name);
        if (text == 0)
        {
            return null;
        }

        string? value = Marshal.PtrToStringUTF8(text);
        RocksDbNative.Free(text);
        return value;
    }

    private ColumnFamily Default => _families[DefaultFamily];

    /// <summary>Calls with the texts as an array of C strings.</summary>
    private static void WithTexts(IReadOnlyList<string> texts, Action<nint, int> call)
    {
        nint[] copies = new nint[texts.Count];
        try
        {
            for (int i = 0; i < copies.Length; i++)
            {
                copies[i] = Marshal.StringToCoTaskMemUTF8(texts[i]);
            }

            fixed (nint* list = copies)
            {
                call((nint)list, copies.Length);
            }
        }
        finally
        {
            foreach (nint copy in copies)
            {
                Marshal.FreeCoTaskMem(copy);
            }
        }
    }

    /// <summary>
    /// Removes empty logs. Each opening begins a log and removes earlier ones only at the next flush, which never
    /// happens here.
    /// </summary>
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
            // There is no such directory yet, or opening it reports the error.
        }
    }

    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            foreach (ColumnFamily family in _families.Values)
            {
                family.Dispose();
            }
        }

        base.Dispose(disposing);
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.Close(handle);
        return true;
    }
}
