using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>An error of RocksDB; the message is its text. Immutable.</summary>
internal sealed class RocksDbException(string message) : IOException(message)
{
    private const int QuotaExceeded = 122;

    /// <summary>The disk is full, or the user's quota is.</summary>
    public bool NoSpace =>
        Message.Contains("No space left on device", StringComparison.Ordinal)
            || Message.Contains(Marshal.GetPInvokeErrorMessage(QuotaExceeded), StringComparison.Ordinal);

    /// <summary>Stored data is damaged.</summary>
    public bool Corruption => Message.StartsWith("Corruption", StringComparison.Ordinal);

    /// <summary>Throws if a call returned an error text, and frees the text.</summary>
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
