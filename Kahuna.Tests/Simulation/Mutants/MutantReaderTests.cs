namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>The grammar of a planted bug's file, and what is said about a file that does not follow it.</summary>
public sealed class MutantReaderTests
{
    [Fact]
    public void A_file_says_what_is_wrong_what_it_needs_and_how_the_source_changes()
    {
        Mutant bug = MutantReader.Read("two-leaders",
        [
            "# A vote leaves twice,",
            "# so that two lead.",
            "# needs: two candidates",
            "",
            "in: Roles.AnswerVote",
            "replace: Send(",
            "with: SendTwice(",
            "remove: Save();",
            "",
            "in: Roles",
            "add:",
            "  private int _twice;",
            "",
            "  private int _more;",
        ]);
        Assert.Equal(
            ("two-leaders", "A vote leaves twice, so that two lead.", "two candidates"),
            (bug.Name, bug.What, bug.Needs));
        Assert.Equal(
            [
                new MutantEdit(6, "Roles.AnswerVote", MutantEditKind.Replace, "Send(", "SendTwice("),
                new MutantEdit(8, "Roles.AnswerVote", MutantEditKind.Replace, "Save();", ""),
                new MutantEdit(11, "Roles", MutantEditKind.Add, "", "private int _twice;\n\n  private int _more;"),
            ],
            bug.Edits);
    }

    [Theory]
    [InlineData("3: the first edit needs \"in: Type.Member\" before it", "replace: a", "with: b")]
    [InlineData("5: \"replace:\" must be followed by \"with:\"", "in: A.B", "replace: a", "insert: b")]
    [InlineData("4: \"before:\" lacks its \"insert:\"", "in: A.B", "before: a")]
    [InlineData("4: unknown key \"change\"", "in: A.B", "change: a")]
    [InlineData("4: \"remove\" is no key with a value", "in: A.B", "remove")]
    [InlineData("3: has no edit", "in: A.B")]
    public void What_does_not_follow_the_grammar_is_refused_with_its_line(string error, params string[] edits)
    {
        FormatException refused = Assert.Throws<FormatException>(
            () => MutantReader.Read("sample", ["# What.", "# needs: much", .. edits]));
        Assert.Contains("sample.mutant:" + error, refused.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_file_without_what_it_needs_is_refused() =>
        Assert.Throws<FormatException>(() => MutantReader.Read("sample", ["# What.", "in: A.B", "remove: a"]));
}
