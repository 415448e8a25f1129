using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>RocksDB refused or failed; the message is its own text.</summary>
internal sealed class RocksDbException(string message) : IOException(message)
{
    private const int QuotaExceeded = 122;

    /// <summary>The disk, or what this user may have of it, is full.</summary>
    public bool NoSpace => Message.Contains("No space left on device", StringComparison.Ordinal) || Message.Contains(Marshal.GetPInvokeErrorMessage(QuotaExceeded), StringComparison.Ordinal);

    /// <summary>What was read is not what was written.</summary>
    public bool Corruption => Message.StartsWith("Corruption", StringComparison.Ordinal);

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
