using System.Globalization;
using System.Runtime.CompilerServices;

namespace Kahuna.Tests.Wire;

/// <summary>The tables of docs/wire-format.md. Stateless; any thread.</summary>
internal static class WireFormatPage
{
    /// <summary>The cells of the one row that begins with a number and a name.</summary>
    public static string[] Row(int number, string name)
    {
        string start = string.Create(CultureInfo.InvariantCulture, $"| {number} | {name} |");
        string hexStart = string.Create(CultureInfo.InvariantCulture, $"| 0x{number:x2} | {name} |");
        return Cells(Assert.Single(Lines(), line =>
            line.StartsWith(start, StringComparison.Ordinal) || line.StartsWith(hexStart, StringComparison.Ordinal)));
    }

    private static string[] Cells(string line) => [.. line.Trim().Trim('|').Split('|').Select(cell => cell.Trim())];

    /// <summary>The lines of the page.</summary>
    public static string[] Lines([CallerFilePath] string source = "") =>
        File.ReadAllLines(Path.Combine(Path.GetDirectoryName(source)!, "..", "..", "docs", "wire-format.md"));
}
