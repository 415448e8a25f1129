namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Writes one file at a time that a database can take in (<see cref="RocksDatabase.IngestExternalFiles"/>). Disposed before <see cref="Finish"/> it leaves a file of no use. Not thread-safe.</summary>
internal sealed unsafe class SstFileWriter(EnvOptions envOptions, DbOptions options) : NativeHandle(RocksDbNative.CreateSstFileWriter(envOptions, options))
{
    /// <summary>Begins a file, or empties it.</summary>
    public SstFileWriter Open(string path)
    {
        RocksDbNative.OpenSstFile(this, path, out nint error);
        RocksDbException.ThrowIf(error);
        return this;
    }

    /// <summary>Adds a key behind all before it.</summary>
    public void Put(ReadOnlySpan<byte> key, ReadOnlySpan<byte> value)
    {
        fixed (byte* keyStart = key, valueStart = value)
        {
            RocksDbNative.PutInSstFile(this, keyStart, (nuint)key.Length, valueStart, (nuint)value.Length, out nint error);
            RocksDbException.ThrowIf(error);
        }
    }

    /// <summary>Ends the file and syncs it. It must not be empty.</summary>
    public void Finish()
    {
        RocksDbNative.FinishSstFile(this, out nint error);
        RocksDbException.ThrowIf(error);
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroySstFileWriter(handle);
        return true;
    }
}
