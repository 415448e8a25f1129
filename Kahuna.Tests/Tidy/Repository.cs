using System.Runtime.CompilerServices;

namespace Kahuna.Tests.Tidy;

/// <summary>The files of the clone that these tests were compiled from. Stateless; any thread.</summary>
internal static class Repository
{
    private static readonly string[] s_generated =
    [
        "bin", "obj", "nupkg", "TestResults", "node_modules", "__pycache__", "BenchmarkDotNet.Artifacts", "artifacts",
        "secrets",
    ];

    /// <summary>The directory that holds Kahuna.sln.</summary>
    public static string Root { get; } = FindRoot();

    /// <summary>
    /// Every file of the clone, relative to its root with '/' between, without what a build or an editor makes.
    /// </summary>
    public static IReadOnlyList<string> Files { get; } =
        [.. Walk(new DirectoryInfo(Root)).Order(StringComparer.Ordinal)];

    public static IEnumerable<string> SourceFiles =>
        Files.Where(file => file.EndsWith(".cs", StringComparison.Ordinal));

    /// <summary>Files that people read and write, by extension; scripts without one are included.</summary>
    public static IEnumerable<string> TextFiles => Files.Where(file =>
        Path.GetExtension(file) is ".cs"
            or ".sh"
            or ".py"
            or ".md"
            or ".proto"
            or ".json"
            or ".csproj"
            or ".props"
            or ".targets"
            or ".config"
            or ".sln"
            or ".editorconfig"
            or ".txt"
            or ".js"
            or ".mjs"
            or ".yaml"
            or ".service"
            or ".conf"
            or "");

    public static string FullPath(string file) => Path.Combine(Root, file);

    public static string[] Lines(string file) => File.ReadAllLines(FullPath(file));

    public static bool Exists(string file) => File.Exists(FullPath(file)) || Directory.Exists(FullPath(file));

    private static IEnumerable<string> Walk(DirectoryInfo directory)
    {
        foreach (FileInfo file in directory.EnumerateFiles())
        {
            yield return Path.GetRelativePath(Root, file.FullName).Replace('\\', '/');
        }

        foreach (DirectoryInfo child in directory.EnumerateDirectories())
        {
            bool hidden = child.Name.StartsWith('.') && child.Name != ".ci";
            if (!hidden && !s_generated.Contains(child.Name) && child.LinkTarget is null)
            {
                foreach (string file in Walk(child))
                {
                    yield return file;
                }
            }
        }
    }

    private static string FindRoot([CallerFilePath] string thisFile = "")
    {
        for (DirectoryInfo? directory = new FileInfo(thisFile).Directory;
            directory is not null;
            directory = directory.Parent)
        {
            if (File.Exists(Path.Combine(directory.FullName, "Kahuna.sln")))
            {
                return directory.FullName;
            }
        }

        throw new DirectoryNotFoundException($"No Kahuna.sln above {thisFile}.");
    }
}
