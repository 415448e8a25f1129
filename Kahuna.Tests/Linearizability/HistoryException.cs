using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// A history that cannot be checked: the sentence says what is wrong, and where if it came from a file.
/// </summary>
internal sealed class HistoryException : Exception
{
    public HistoryException(int line, string sentence)
        : base(line == 0 ? sentence : string.Create(CultureInfo.InvariantCulture, $"line {line}: {sentence}"))
    {
        Line = line;
    }

    /// <summary>The line of the file, from 1 on; 0 when there is none.</summary>
    public int Line { get; }
}
