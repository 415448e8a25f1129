using System.Text.RegularExpressions;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Every page can be found from the index, every link leads somewhere, and what is promised to exist does. Lines of
/// prose end at 120 columns. Stateless.
/// </summary>
public sealed partial class DocumentationTests
{
    private const int ColumnsMax = 120;

    private static IEnumerable<string> Pages =>
        Repository.Files.Where(file => file.EndsWith(".md", StringComparison.Ordinal));

    [Theory]
    [InlineData("README.md")]
    [InlineData("CHANGELOG.md")]
    [InlineData("LICENSE")]
    [InlineData("docs/README.md")]
    [InlineData("docs/guarantees.md")]
    public void Exists(string file) => Assert.True(Repository.Exists(file), file);

    [Fact]
    public void Every_page_is_linked_from_the_index()
    {
        HashSet<string> linked = [.. LocalLinks("docs/README.md")];
        Findings.AssertNone(Pages.Where(
            page => page.StartsWith("docs/", StringComparison.Ordinal)
                && !page.StartsWith("docs/adr/", StringComparison.Ordinal)
                && page != "docs/README.md"
                && !linked.Contains(page)));
    }

    [Fact]
    public void Every_decision_record_is_listed()
    {
        HashSet<string> linked = [.. LocalLinks("docs/adr/README.md")];
        Findings.AssertNone(Pages.Where(
            page => page.StartsWith("docs/adr/", StringComparison.Ordinal)
                && page != "docs/adr/README.md"
                && !linked.Contains(page)));
    }

    [Fact]
    public void Links_lead_somewhere() =>
        Findings.AssertNone(
            Pages.SelectMany(page =>
                LocalLinks(page).Where(target => !Repository.Exists(target)).Select(target => $"{page}: {target}")));

    [Fact]
    public void Source_files_named_in_pages_exist()
    {
        IEnumerable<string> missing =
            from page in Pages
            from Match match in SourcePath().Matches(File.ReadAllText(Repository.FullPath(page)))
            where !Repository.Exists(match.Groups[1].Value)
            select $"{page}: {match.Groups[1].Value}";
        Findings.AssertNone(missing);
    }

    [Fact]
    public void Changelog_has_an_entry_for_the_version()
    {
        Match version = VersionElement().Match(File.ReadAllText(Repository.FullPath("Directory.Build.props")));
        Assert.Contains(Repository.Lines("CHANGELOG.md"), line =>
            line.StartsWith($"## {version.Groups[1].Value}", StringComparison.Ordinal));
    }

    [Fact]
    public void Lines_end_at_120_columns() =>
        Findings.AssertNone(Pages.SelectMany(page => LongLines(page, Repository.Lines(page))));

    [Theory]
    [InlineData("prose", "", true)]
    [InlineData("code", "```csharp", true)]
    [InlineData("- [link] and words", "", true)]
    [InlineData("| cell |", "", false)]
    [InlineData("{ output }", "```json", false)]
    [InlineData("output", "```text", false)]
    [InlineData("- [link](adr/0001.md)", "", false)]
    public void A_long_line_is_found_unless_it_cannot_be_shorter(string line, string fence, bool isFound)
    {
        string text = line.Insert(line.Length / 2, new string('x', ColumnsMax));
        string[] page = fence.Length == 0 ? [text] : [fence, text, "```"];
        Assert.Equal(isFound, LongLines("page", page).Any());
    }

    /// <summary>
    /// Lines over the limit, except table rows, a link alone, and the output of commands (json and text blocks).
    /// </summary>
    private static IEnumerable<string> LongLines(string page, string[] lines)
    {
        string? fence = null;
        for (int i = 0; i < lines.Length; i++)
        {
            string line = lines[i].TrimStart();
            bool isFence = line.StartsWith("```", StringComparison.Ordinal);
            fence = isFence ? (fence is null ? line : null) : fence;
            bool mayBeLong = fence is null
                ? line.StartsWith('|') || LinkAlone().IsMatch(line)
                : fence is "```json" or "```text";
            if (lines[i].Length > ColumnsMax && !mayBeLong)
            {
                yield return $"{page}:{i + 1}: {lines[i].Length} columns";
            }
        }
    }

    private static IEnumerable<string> LocalLinks(string page)
    {
        string folder = Path.GetDirectoryName(Repository.FullPath(page))!;
        foreach (Match match in Link().Matches(File.ReadAllText(Repository.FullPath(page))))
        {
            string target = match.Groups[1].Value.Split('#')[0];
            if (target.Length > 0 && !target.Contains("://", StringComparison.Ordinal) && !target.StartsWith("mailto:", StringComparison.Ordinal))
            {
                yield return Path.GetRelativePath(Repository.Root, Path.GetFullPath(Path.Combine(folder, target)))
                    .Replace('\\', '/');
            }
        }
    }

    [GeneratedRegex(@"\]\(([^)\s]+)\)")]
    private static partial Regex Link();

    [GeneratedRegex(
        @"`((?:Kahuna\.(?:Client|Server|Benchmark|Cli|Tests)|scripts|docs)/[\w./-]+\.(?:cs|proto|sh|py|md))`")]
    private static partial Regex SourcePath();

    [GeneratedRegex(@"^(?:[-*] )?\[[^\]]+\]\([^)\s]+\)[.,;:]?$")]
    private static partial Regex LinkAlone();

    [GeneratedRegex("<Version>(.+)</Version>")]
    private static partial Regex VersionElement();
}
