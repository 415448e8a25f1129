using System.Globalization;

namespace Kahuna.Cli.Terminal;

/// <summary>
/// Spans of time as people write them: <c>500ms</c>, <c>15s</c>, <c>5m</c>, <c>2h</c>, <c>30d</c>; a number alone is
/// seconds. Static, any thread.
/// </summary>
internal static class SpanText
{
    public const string Form = "a time such as 500ms, 15s, 5m, 2h or 30d";

    private static readonly (string Unit, double Ms)[] s_units =
        [("ms", 1), ("min", 60_000), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("", 1_000)];

    /// <summary>Reads a span; false when it is none, or negative.</summary>
    public static bool TryParse(string text, out TimeSpan span)
    {
        span = TimeSpan.Zero;
        foreach ((string unit, double ms) in s_units)
        {
            if (text.EndsWith(unit, StringComparison.Ordinal))
            {
                bool isNumber = double.TryParse(
                    text.AsSpan(0, text.Length - unit.Length), NumberStyles.AllowDecimalPoint,
                    CultureInfo.InvariantCulture, out double count);
                bool isInRange = isNumber && count * ms < TimeSpan.MaxValue.TotalMilliseconds;
                span = isInRange ? TimeSpan.FromMilliseconds(count * ms) : TimeSpan.Zero;
                return isInRange;
            }
        }

        return false;
    }

    /// <summary>A span in its largest unit with two units at most: <c>2h 5m</c>.</summary>
    public static string Text(TimeSpan span)
    {
        if (span < TimeSpan.Zero)
        {
            return "-" + Text(span.Negate());
        }

        FormattableString text = span switch
        {
            { TotalSeconds: < 1 } => $"{span.TotalMilliseconds:0}ms",
            { TotalMinutes: < 1 } => $"{span.TotalSeconds:0.#}s",
            { TotalHours: < 1 } => $"{span.Minutes}m {span.Seconds}s",
            { TotalDays: < 1 } => $"{span.Hours}h {span.Minutes}m",
            _ => $"{span.Days}d {span.Hours}h",
        };
        return FormattableString.Invariant(text);
    }
}
