using System.Globalization;

namespace Kahuna.Cli.Results;

/// <summary>A number of bytes: a number in JSON, and a short text in a table. Immutable.</summary>
/// <param name="Count">0 or more.</param>
internal sealed record Bytes(long Count)
{
    private static readonly string[] s_units = ["B", "kB", "MB", "GB", "TB"];

    /// <summary>Null for no number.</summary>
    public static Bytes? Of(long? count) => count is { } known ? new Bytes(known) : null;

    /// <summary>In the unit of which there are less than a thousand.</summary>
    public override string ToString()
    {
        double value = Count;
        int unit = 0;
        while (value >= 1000 && unit < s_units.Length - 1)
        {
            value /= 1000;
            unit++;
        }

        return string.Create(CultureInfo.InvariantCulture, $"{value:0.#} {s_units[unit]}");
    }
}
