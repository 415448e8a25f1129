using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>
/// The files of the planted bugs in the clone that these tests were compiled from. Stateless; any thread.
/// </summary>
internal static class MutantFolder
{
    public const string Path = "Kahuna.Tests/Simulation/Mutants/";

    public const string Extension = ".mutant";

    /// <summary>The names of all planted bugs, sorted.</summary>
    public static IReadOnlyList<string> Names { get; } =
    [
        .. Directory.EnumerateFiles(Repository.FullPath(Path), "*" + Extension)
            .Select(static file => System.IO.Path.GetFileNameWithoutExtension(file))
            .Order(StringComparer.Ordinal),
    ];

    /// <summary>Reads one of <see cref="Names"/>.</summary>
    /// <exception cref="FormatException">The file does not follow the grammar; the message says where.</exception>
    public static Mutant Read(string name) => MutantReader.Read(name, Repository.Lines(Path + name + Extension));
}
