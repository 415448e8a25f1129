using System.Globalization;

namespace Kahuna.Wire.Scripts;

/// <summary>A text is not a script; nothing ran. Immutable.</summary>
/// <param name="message">The whole sentence: <c>line L, column C: expected X, found 'Y'</c>.</param>
/// <param name="line">Line of the error, from 1.</param>
/// <param name="column">Column of the error in Unicode code points, from 1.</param>
internal sealed class ScriptSyntaxException(string message, int line, int column) : Exception(message)
{
    /// <summary>Line of the error, from 1.</summary>
    public int Line { get; } = line;

    /// <summary>Column of the error in Unicode code points, from 1.</summary>
    public int Column { get; } = column;

    /// <summary>The error that something else stands at <paramref name="position"/>.</summary>
    /// <param name="position">Where.</param>
    /// <param name="expected">What may stand there, as it fits behind "expected".</param>
    /// <param name="found">What stands there, with its quotes.</param>
    public static ScriptSyntaxException Expected(ScriptPosition position, string expected, string found) => new(
        string.Create(
            CultureInfo.InvariantCulture,
            $"line {position.Line}, column {position.Column}: expected {expected}, found {found}"),
        position.Line,
        position.Column);
}
