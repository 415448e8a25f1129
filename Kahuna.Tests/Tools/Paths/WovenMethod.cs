using System.Globalization;

namespace Kahuna.Tests.Tools.Paths;

/// <summary>A method of the product that reports when it is entered. Immutable.</summary>
/// <param name="Type">The type that a person wrote it in.</param>
/// <param name="Name">Its name there; that of the method around it for a lambda or a state machine.</param>
/// <param name="File">Its file, below the root of the repository.</param>
/// <param name="Statements">How many statements it has.</param>
/// <param name="IsAccessor">A getter, a setter, an operator or a constructor.</param>
internal sealed record WovenMethod(string Type, string Name, string File, int Statements, bool IsAccessor)
{
    /// <summary>One line of a list.</summary>
    public string ToLine() =>
        string.Create(CultureInfo.InvariantCulture, $"{Type}\t{Name}\t{File}\t{Statements}\t{IsAccessor}");

    /// <summary>Reads such a line.</summary>
    public static WovenMethod Parse(string line) =>
        line.Split('\t') is [var type, var name, var file, var statements, var isAccessor]
            ? new WovenMethod(
                type, name, file, int.Parse(statements, CultureInfo.InvariantCulture), bool.Parse(isAccessor))
            : throw new InvalidDataException($"\"{line}\" is no line of a list of methods.");
}
