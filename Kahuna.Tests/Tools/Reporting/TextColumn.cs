namespace Kahuna.Tests.Tools.Reporting;

/// <summary>A column of a <see cref="TextTable"/>. Immutable.</summary>
/// <param name="Heading">Its first line.</param>
/// <param name="Width">Its characters.</param>
/// <param name="Digits">Of numbers, after the point.</param>
/// <param name="IsLeft">Whether its text begins at the left edge.</param>
internal readonly record struct TextColumn(string Heading, int Width, int Digits = 0, bool IsLeft = false)
{
    /// <summary>A value as the column shows it; "-" without one.</summary>
    public string Show(object? value) => value switch
    {
        null => Pad("-"),
        string text => Pad(text),
        IConvertible number => Pad(InvariantText.Cell(Convert.ToDouble(number, null), 0, Digits)),
        _ => Pad($"{value}"),
    };

    public string Pad(string text) => IsLeft ? text.PadRight(Width) : text.PadLeft(Width);
}
