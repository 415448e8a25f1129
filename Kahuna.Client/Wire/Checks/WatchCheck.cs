using System.Globalization;
using System.Text.Unicode;

namespace Kahuna.Wire.Checks;

/// <summary>Validates what a watch is about. Stateless, any thread.</summary>
internal static class WatchCheck
{
    /// <summary>Why a watch of this name is refused; null when it is valid. A sentence without its full stop.</summary>
    public static string? NameRefusal(WatchScope scope, ReadOnlySpan<byte> name)
    {
        string field = scope switch
        {
            WatchScope.Key => "key",
            WatchScope.Bucket => "bucket",
            _ => "prefix",
        };
        if (name.IsEmpty && scope == WatchScope.Key)
        {
            return "key is empty; it must have 1 to 1,024 bytes";
        }

        if (name.Length > Limits.KeyBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"{field} is {name.Length:N0} bytes; the limit is {Limits.KeyBytesMax:N0}");
        }

        if (!Utf8.IsValid(name))
        {
            return $"{field} is not valid UTF-8";
        }

        return name.StartsWith(Limits.ReservedPrefix)
            ? $"{field} begins with __kahuna, which is reserved for the system"
            : null;
    }
}
