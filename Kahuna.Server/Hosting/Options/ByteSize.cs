using System.Globalization;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Parses sizes: a number with an optional unit. KB, MB, GB and TB are decimal; KiB, MiB, GiB and TiB are binary. Pure.
/// </summary>
internal static class ByteSize
{
    private static readonly (string Unit, long Factor)[] s_units =
    [
        ("KIB", 1L << 10), ("MIB", 1L << 20), ("GIB", 1L << 30), ("TIB", 1L << 40),
        ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
        ("B", 1), ("", 1),
    ];

    /// <summary>
    /// Parses a size of at least one byte. False if the text is malformed or the number is out of range.
    /// </summary>
    public static bool TryParse(string text, out long bytes)
    {
        bytes = 0;
        string upper = text.Trim().ToUpperInvariant();
        (string unit, long factor) = s_units.First(
            candidate => upper.EndsWith(candidate.Unit, StringComparison.Ordinal));
        string number = upper[..^unit.Length].TrimEnd();
        if (!decimal.TryParse(number, NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out decimal count)
            || count <= 0
            || count > long.MaxValue / factor)
        {
            return false;
        }

        bytes = (long)(count * factor);
        return bytes > 0;
    }
}
