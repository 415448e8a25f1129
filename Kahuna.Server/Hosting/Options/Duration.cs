using System.Globalization;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Parses times: a number with a unit (ms, s, min, h or d), or the word for no limit. Pure.</summary>
internal static class Duration
{
    /// <summary>No limit.</summary>
    public const string Forever = "forever";

    private static readonly (string Unit, TimeSpan Time)[] s_units =
    [
        ("min", TimeSpan.FromMinutes(1)), ("ms", TimeSpan.FromMilliseconds(1)), ("s", TimeSpan.FromSeconds(1)),
        ("h", TimeSpan.FromHours(1)), ("d", TimeSpan.FromDays(1)),
    ];

    /// <summary>
    /// Parses a whole number of units, or no limit, which is <see cref="TimeSpan.MaxValue"/>. False if the text is
    /// neither.
    /// </summary>
    public static bool TryParse(string text, out TimeSpan time)
    {
        string lower = text.Trim().ToLowerInvariant();
        time = TimeSpan.MaxValue;
        if (lower == Forever)
        {
            return true;
        }

        foreach ((string unit, TimeSpan one) in s_units)
        {
            if (lower.EndsWith(unit, StringComparison.Ordinal)
                && int.TryParse(
                    lower[..^unit.Length].TrimEnd(), NumberStyles.None, CultureInfo.InvariantCulture, out int count))
            {
                time = count * one;
                return true;
            }
        }

        return false;
    }
}
