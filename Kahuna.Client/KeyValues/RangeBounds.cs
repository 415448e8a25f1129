using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>Turns a prefix and bounds into a range of keys. Stateless, any thread.</summary>
internal static class RangeBounds
{
    /// <exception cref="KahunaException">A text cannot be written as UTF-8.</exception>
    public static KeyRange Of(string prefix, string? from, string? to) => KeyRange.Of(
        Encode(prefix, "prefix"),
        from is null ? null : Encode(from, "From"),
        to is null ? null : Encode(to, "To"));

    private static byte[] Encode(string text, string field)
    {
        try
        {
            return Utf8Text.Strict.GetBytes(text);
        }
        catch (EncoderFallbackException)
        {
            throw OperationErrors.NoUtf8(field);
        }
    }
}
