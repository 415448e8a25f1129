using System.Text.RegularExpressions;

namespace Kahuna.Tests.Tidy;

/// <summary>House style that can be read off the source files.</summary>
public sealed partial class SourceTests
{
    private const int LinesMax = 400;

    /// <summary>Files that are longer for a reason. An entry whose file became short, or is gone, fails too.</summary>
    private static readonly Dictionary<string, string> s_longFiles = new()
    {
        ["Kahuna.Server/Partitions/Partition.cs"] = "One turn of a partition is read from top to bottom; its fields are touched by every step of it.",
        ["Kahuna.Server/State/KeyStore.cs"] = "What happens to a key is one idea: tables, history, deadlines and digest change in step.",
        ["Kahuna.Server/Raft/RaftCore.cs"] = "The core's whole interface with what each part of it promises; what it does is in the parts.",
        ["Kahuna.Tests/Raft/PaperScenarioTests.cs"] = "A catalogue of the papers' scenarios, one method each.",
    };

    [Fact]
    public void Files_are_short()
    {
        IEnumerable<string> tooLong = Repository.Files
            .Where(file => Path.GetExtension(file) is ".cs" or ".sh" or ".py" or ".mjs")
            .Select(file => (File: file, Repository.Lines(file).Length))
            .Where(entry => entry.Length > LinesMax)
            .Select(entry => $"{entry.File}: {entry.Length} lines");
        Findings.AssertNone(tooLong.Where(entry => !s_longFiles.ContainsKey(entry.Split(':')[0])));
    }

    [Fact]
    public void Exceptions_from_the_length_are_still_needed() =>
        Findings.AssertNone(s_longFiles.Keys.Where(file => !Repository.Files.Contains(file) || Repository.Lines(file).Length <= LinesMax));

    [Fact]
    public void Namespaces_equal_folders()
    {
        List<string> wrong = [];
        foreach (string file in Repository.SourceFiles)
        {
            string? declared = Repository.Lines(file).Select(line => FileScopedNamespace().Match(line)).FirstOrDefault(match => match.Success)?.Groups[1].Value;
            string expected = Path.GetDirectoryName(file)!.Replace('/', '.').Replace('\\', '.');

            // The entry point of a program is top-level statements, without a namespace.
            if (declared != expected && !(declared is null && Path.GetFileName(file) == "Program.cs"))
            {
                wrong.Add($"{file}: {declared ?? "no file-scoped namespace"}, expected {expected}");
            }
        }

        Findings.AssertNone(wrong);
    }

    /// <summary>System's namespaces first, the rest by the alphabet, as <c>dotnet format</c> puts them.</summary>
    [Fact]
    public void Usings_are_in_order()
    {
        List<string> wrong = [];
        foreach (string file in Repository.SourceFiles)
        {
            string[] names = [.. Repository.Lines(file).Select(line => PlainUsing().Match(line)).Where(match => match.Success).Select(match => match.Groups[1].Value)];
            string[] sorted = [.. names.OrderBy(name => name != "System" && !name.StartsWith("System.", StringComparison.Ordinal)).ThenBy(name => name.Replace('.', '\0'), StringComparer.OrdinalIgnoreCase)];
            wrong.AddRange(names.Zip(sorted).Where(pair => pair.First != pair.Second).Take(1).Select(pair => $"{file}: {pair.First} where {pair.Second} should be"));
        }

        Findings.AssertNone(wrong);
    }

    [Fact]
    public void No_unfinished_work_is_marked()
    {
        // The words are put together here so that this file does not find itself.
        Regex marks = new(@"\b(" + string.Join('|', "TO" + "DO", "FIX" + "ME", "HA" + "CK", "Not" + "ImplementedException") + @")\b");
        Findings.AssertNone(LinesMatching(marks));
    }

    [Fact]
    public void No_path_of_somebodys_machine_is_written_down()
    {
        string homes = string.Join('|', new[] { "home", "root", "Users", "work", "mnt" }.Select(name => $"/{name}/"));
        Findings.AssertNone(LinesMatching(new Regex($@"(?<![\w.$}}~/-])({homes})|\b[A-Z]:\\\w")));
    }

    [Fact]
    public void Files_end_with_one_newline_and_have_no_trailing_blanks()
    {
        List<string> wrong = [];
        foreach (string file in Repository.TextFiles.Where(IsWrittenByHand))
        {
            string text = File.ReadAllText(Repository.FullPath(file));
            if (text.Length > 0 && (!text.EndsWith('\n') || text.EndsWith("\n\n", StringComparison.Ordinal)))
            {
                wrong.Add($"{file}: does not end with one newline");
            }

            if (TrailingBlank().IsMatch(text))
            {
                wrong.Add($"{file}: blanks at the end of a line");
            }
        }

        Findings.AssertNone(wrong);
    }

    private static bool IsWrittenByHand(string file) =>
        !file.Contains("/Golden/", StringComparison.Ordinal) && !file.EndsWith("packages.lock.json", StringComparison.Ordinal) && !file.EndsWith(".sln", StringComparison.Ordinal);

    private static IEnumerable<string> LinesMatching(Regex pattern) =>
        from file in Repository.TextFiles
        from line in Repository.Lines(file).Select((text, i) => (text, number: i + 1))
        where pattern.IsMatch(line.text)
        select $"{file}:{line.number}: {line.text.Trim()}";

    [GeneratedRegex(@"^using ([\w.]+);$")]
    private static partial Regex PlainUsing();

    [GeneratedRegex(@"^namespace ([\w.]+);")]
    private static partial Regex FileScopedNamespace();

    [GeneratedRegex(@"[ \t]\r?$", RegexOptions.Multiline)]
    private static partial Regex TrailingBlank();
}
