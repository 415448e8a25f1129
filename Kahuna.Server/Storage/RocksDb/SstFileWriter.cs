namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// Writes files for a database to ingest (<see cref="RocksDatabase.IngestExternalFiles"/>), one at a time. If disposed
/// before <see cref="Finish"/> it leaves an unusable file. Not thread-safe.
/// </summary>
internal sealed unsafe class SstFileWriter(EnvOptions envOptions, DbOptions options)
    : NativeHandle(RocksDbNative.CreateSstFileWriter(envOptions, options))
{
    /// <summary>Creates a file, or empties it.</summary>
    public SstFileWriter Open(string path)
    {
        RocksDbNative.OpenSstFile(this, path, out nint error);
        RocksDbException.ThrowIf(error);
        return this;
    }

    /// <summary>Adds a key, which must be greater than all before it.</summary>
    public void Put(ReadOnlySpan<byte> key, ReadOnlySpan<byte> value)
    {
        fixed (byte* keyStart = key, valueStart = value)
        {
            RocksDbNative.PutInSstFile(
                this, keyStart, (nuint)key.Length, valueStart, (nuint)value.Length, out nint error);
            RocksDbException.ThrowIf(error);
        }
    }

    /// <summary>Finishes and syncs the file, which must not be empty.</summary>
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
