using System.Globalization;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Parses times: a number with a unit (s, min, h or d), or the word for no limit. Pure.</summary>
internal static class Duration
{
    /// <summary>No limit.</summary>
    public const string Forever = "forever";

    private static readonly (string Unit, long Seconds)[] s_units = [("min", 60), ("s", 1), ("h", 3600), ("d", 86_400)];

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

        foreach ((string unit, long seconds) in s_units)
        {
            if (lower.EndsWith(unit, StringComparison.Ordinal)
                && int.TryParse(
                    lower[..^unit.Length].TrimEnd(), NumberStyles.None, CultureInfo.InvariantCulture, out int count))
            {
                time = TimeSpan.FromSeconds(count * seconds);
                return true;
            }
        }

        return false;
    }
}
