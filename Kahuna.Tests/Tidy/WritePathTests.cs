namespace Kahuna.Tests.Tidy;

/// <summary>
/// The pages name methods of the code, docs/write-path.md above all: each of them exists, and where the name is a link,
/// in the file that it leads to. Stateless.
/// </summary>
[Collection(CompiledCodeCollection.Name)]
public sealed class WritePathTests
{
    private const string Page = "docs/write-path.md";

    /// <summary>The folder of the samples below.</summary>
    private const string Groups = "../Kahuna.Server/Partitions/Groups";

    [Fact]
    public void Every_method_that_a_page_names_exists() =>
        Findings.AssertNone(Repository.Files
            .Where(file => file.StartsWith("docs/", StringComparison.Ordinal) && Path.GetExtension(file) == ".md")
            .SelectMany(page => NamedCode.Wrong(page, File.ReadAllText(Repository.FullPath(page)))));

    /// <summary>Links that are not recognized would not be checked.</summary>
    [Fact]
    public void Every_link_of_the_page_to_a_source_file_names_a_type_or_a_method()
    {
        string text = File.ReadAllText(Repository.FullPath(Page));
        Assert.Equal(text.Split(".cs)").Length - 1, NamedCode.CountLinks(text));
        Assert.True(NamedCode.CountLinks(text) > 50, $"{NamedCode.CountLinks(text)} links");
    }

    [Theory]
    [InlineData("[`Group.Propose`](F/Group.cs)", null)]
    [InlineData("[`Group`](F/Group.cs)", null)]
    [InlineData("`Group.Propose` or `RandomAccess.FlushToDisk`", null)]
    [InlineData("[`Group.Bless`](F/Group.cs)", "`Group.Bless`: Group in *Groups/Group.cs has no member Bless")]
    [InlineData("[`Group.Propose`](F/GroupHooks.cs)", "`Group.Propose`: *Groups/GroupHooks.cs declares no type Group; see *Groups/Group.cs")]
    [InlineData("[`Group`](F/Gone.cs)", "`Group`: there is no file *Groups/Gone.cs; see *Groups/Group.cs")]
    [InlineData("`Group.Bless`", "`Group.Bless`: no type Group has a member Bless")]
    [InlineData("`Bishop.Bless`", "`Bishop.Bless`: there is no type Bishop")]
    public void A_wrong_name_is_found(string text, string? finding)
    {
        string? expected = finding is null
            ? null
            : $"{Page}: {finding.Replace("*Groups", Groups[3..], StringComparison.Ordinal)}";
        Assert.Equal(expected, NamedCode.Wrong(Page, text.Replace("(F", $"({Groups}", StringComparison.Ordinal))
            .SingleOrDefault());
    }
}
