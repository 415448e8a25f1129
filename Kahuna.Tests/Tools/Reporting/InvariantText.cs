using System.Globalization;

namespace Kahuna.Tests.Tools.Reporting;

/// <summary>Text with numbers as English writes them, whatever the machine's language. Stateless.</summary>
internal static class InvariantText
{
    public static void Line(this TextWriter writer, FormattableString text) =>
        writer.WriteLine(FormattableString.Invariant(text));

    /// <summary>
    /// A number with digits after the point and commas between thousands, or "-", to the right in a width.
    /// </summary>
    public static string Cell(double? value, int width, int digits) =>
        (value?.ToString($"N{digits}", CultureInfo.InvariantCulture) ?? "-").PadLeft(width);
}
