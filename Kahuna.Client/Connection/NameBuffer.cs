using System.Text;
using Kahuna.Client.Results;
using Kahuna.Client.Wire;

namespace Kahuna.Client.Connection;

/// <summary>A name of an operation in UTF-8, in memory that is used again. Part of one <see cref="Operation"/>; threading as there.</summary>
internal struct NameBuffer
{
    private byte[]? _bytes;
    private int _length;

    public readonly ReadOnlySpan<byte> Bytes => _bytes.AsSpan(0, _length);

    /// <summary>Takes a name; returns why it cannot be one, or null.</summary>
    /// <param name="name">The text.</param>
    /// <param name="field">What a caller knows it as.</param>
    public KahunaException? Set(string name, string field)
    {
        _length = 0;
        int had = _bytes?.Length ?? 0;
        int bytesMax = Utf8Text.Strict.GetMaxByteCount(name.Length);
        if (_bytes is null || (had < bytesMax && had < Limits.KeyBytesMax))
        {
            _bytes = new byte[Math.Min(Math.Max(bytesMax, Math.Max(2 * had, 64)), Limits.KeyBytesMax)];
        }

        try
        {
            return Utf8Text.Strict.TryGetBytes(name, _bytes, out _length) ? null : Failures.NameTooLong(field, name);
        }
        catch (EncoderFallbackException)
        {
            _length = 0;
            return Failures.NoUtf8(field);
        }
    }

    public void Clear() => _length = 0;
}
