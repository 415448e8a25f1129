using System.Globalization;
using System.Text.RegularExpressions;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Decision records have the form of docs/adr/0000-template.md, and the index has their titles. Stateless.
/// </summary>
public sealed partial class DecisionRecordTests
{
    private const string Folder = "docs/adr/";

    private static readonly string[] s_sections = ["## Context", "## Decision", "## Consequences", "## Rejected"];

    [Fact]
    public void Records_have_one_form() =>
        Findings.AssertNone(Repository.Files
            .Where(static file => file.StartsWith(Folder, StringComparison.Ordinal) && RecordName().IsMatch(file))
            .SelectMany(static file => Misfits(file, Repository.Lines(file), Repository.Lines(Folder + "README.md"))));

    [Theory]
    [InlineData("# 7. Turns|Status: accepted, 2026-11-21|## Context|## Decision|## Consequences|## Rejected", "")]
    [InlineData("# 8. Turns|Status: accepted, 2026-11-21|## Context|## Decision|## Consequences|## Rejected", "title")]
    [InlineData("# 7. Turns|Status: accepted|## Context|## Decision|## Consequences|## Rejected", "status")]
    [InlineData("# 7. Turns|Status: accepted, 2026-11-21|## Context|## Decision|## Consequences", "sections")]
    [InlineData("# 7. Loops|Status: accepted, 2026-11-21|## Context|## Decision|## Consequences|## Rejected", "index")]
    public void A_record_of_another_form_is_found(string record, string expected)
    {
        string[] index = ["| [7](0007-turns.md) | Turns |"];
        string found = string.Join(',', Misfits("docs/adr/0007-turns.md", record.Split('|'), index));
        Assert.Equal(expected, found[(found.LastIndexOf(' ') + 1)..]);
    }

    /// <summary>What is wrong with one record: at most one word for each part of the form.</summary>
    private static IEnumerable<string> Misfits(string file, string[] lines, string[] index)
    {
        string name = file[Folder.Length..];
        int number = int.Parse(name[..4], CultureInfo.InvariantCulture);
        if (!lines[0].StartsWith($"# {number}. ", StringComparison.Ordinal))
        {
            yield return $"{file}: title";
            yield break;
        }

        IEnumerable<string> body = lines.Skip(1).SkipWhile(string.IsNullOrEmpty);
        string status = string.Join(' ', body.TakeWhile(static line => line.Length > 0));
        if (!status.StartsWith("Status: ", StringComparison.Ordinal) || (number > 0 && !Date().IsMatch(status)))
        {
            yield return $"{file}: status";
        }

        string[] sections = [.. lines.Where(static line => line.StartsWith("## ", StringComparison.Ordinal))];
        if (!sections.SequenceEqual(s_sections) && !sections.SequenceEqual([.. s_sections, "## Found on the way"]))
        {
            yield return $"{file}: sections";
        }

        string row = $"| [{number}]({name}) | {lines[0][$"# {number}. ".Length..]}";
        if (number > 0 && !index.Any(line => line.StartsWith(row, StringComparison.Ordinal)))
        {
            yield return $"{file}: index";
        }
    }

    [GeneratedRegex(@"/\d{4}-[\w-]+\.md$")]
    private static partial Regex RecordName();

    [GeneratedRegex(@"\d{4}-\d{2}-\d{2}")]
    private static partial Regex Date();
}
