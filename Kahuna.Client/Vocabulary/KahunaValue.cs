using System.Text;

namespace Kahuna;

/// <summary>
/// A value of a key: bytes, or null, which differs from no bytes. Immutable if the bytes behind it are not changed;
/// values that the client returns own their bytes.
/// </summary>
public readonly struct KahunaValue : IEquatable<KahunaValue>
{
    private readonly ReadOnlyMemory<byte> _bytes;
    private readonly bool _isPresent;

    /// <summary>Wraps bytes without copying them.</summary>
    /// <param name="bytes">0 bytes to the server's limit (1 MiB unless it was raised).</param>
    public KahunaValue(ReadOnlyMemory<byte> bytes)
    {
        _bytes = bytes;
        _isPresent = true;
    }

    /// <summary>The null value; equal to <c>default</c>.</summary>
    public static KahunaValue Null => default;

    /// <summary>The value of no bytes, which is not null.</summary>
    public static KahunaValue Empty => new(ReadOnlyMemory<byte>.Empty);

    /// <summary>True for the null value.</summary>
    public bool IsNull => !_isPresent;

    /// <summary>The bytes; empty for the null value.</summary>
    public ReadOnlyMemory<byte> Memory => _bytes;

    /// <summary>Encodes text as UTF-8; null is the null value.</summary>
    /// <param name="text">Any text without unpaired surrogates.</param>
    /// <exception cref="ArgumentException">The text has an unpaired surrogate, which UTF-8 cannot encode.</exception>
    public static KahunaValue From(string? text)
    {
        if (text is null)
        {
            return Null;
        }

        try
        {
            return new KahunaValue(Utf8Text.Strict.GetBytes(text));
        }
        catch (EncoderFallbackException e)
        {
            throw new ArgumentException(
                "The text has an unpaired surrogate and cannot be written as UTF-8.", nameof(text), e);
        }
    }

    /// <summary>Encodes text as UTF-8; null is the null value.</summary>
    /// <param name="text">Any text without unpaired surrogates.</param>
    public static implicit operator KahunaValue(string? text) => From(text);

    /// <summary>Wraps bytes without copying them; null is the null value.</summary>
    /// <param name="bytes">The bytes or null.</param>
    public static implicit operator KahunaValue(byte[]? bytes) => bytes is null ? Null : new KahunaValue(bytes);

    /// <summary>True when both are null, or neither is and their bytes are equal.</summary>
    /// <param name="left">One value.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(KahunaValue left, KahunaValue right) => left.Equals(right);

    /// <summary>True unless both are null, or neither is and their bytes are equal.</summary>
    /// <param name="left">One value.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(KahunaValue left, KahunaValue right) => !left.Equals(right);

    /// <summary>The bytes decoded as UTF-8, or null for the null value. Invalid bytes decode to U+FFFD.</summary>
    public string? AsString() => _isPresent ? Encoding.UTF8.GetString(_bytes.Span) : null;

    /// <summary>A copy of the bytes, or null for the null value.</summary>
    public byte[]? ToArray() => _isPresent ? _bytes.ToArray() : null;

    /// <inheritdoc/>
    public bool Equals(KahunaValue other) =>
        _isPresent == other._isPresent && _bytes.Span.SequenceEqual(other._bytes.Span);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is KahunaValue other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode()
    {
        HashCode hash = default;
        hash.Add(_isPresent);
        hash.AddBytes(_bytes.Span);
        return hash.ToHashCode();
    }

    /// <summary>The text, or <c>(null)</c>.</summary>
    public override string ToString() => AsString() ?? "(null)";
}
