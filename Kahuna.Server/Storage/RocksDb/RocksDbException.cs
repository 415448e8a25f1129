using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>RocksDB refused or failed; the message is its own text.</summary>
internal sealed class RocksDbException(string message) : IOException(message)
{
    /// <summary>Throws when a call has left an error text, and frees that text.</summary>
    public static void ThrowIf(nint error)
    {
        if (error != 0)
        {
            string text = Marshal.PtrToStringUTF8(error) ?? "unknown error";
            RocksDbNative.Free(error);
            throw new RocksDbException(text);
        }
    }
}
