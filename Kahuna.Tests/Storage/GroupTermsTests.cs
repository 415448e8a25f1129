using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>Runs of terms that grow behind, are overwritten, and are forgotten in front.</summary>
public sealed class GroupTermsTests
{
    [Theory]
    [InlineData(0, 0, "1@1 2@3 5@6")]
    [InlineData(1, 1, "1@2 2@3 5@6")]
    [InlineData(2, 1, "2@3 5@6")]
    [InlineData(3, 2, "2@4 5@6")]
    [InlineData(5, 2, "5@6")]
    [InlineData(6, 5, "5@7")]
    [InlineData(7, 5, "")]
    public void CuttingForgetsTheRunsBefore(ulong start, ulong startTerm, string runs)
    {
        GroupTerms terms = Filled();
        terms.Cut(new LogIndex(start), new LogIndex(7));
        Assert.Equal(runs, Show(terms));
        Assert.Equal((new Term(startTerm), new Term(5)), (terms.StartTerm, terms.LastTerm));
    }

    [Fact]
    public void OverwritingAndRestarting()
    {
        GroupTerms terms = Filled();
        terms.Truncate(new LogIndex(5));
        Assert.Equal(("1@1 2@3", new Term(2)), (Show(terms), terms.LastTerm));
        terms.Add(new LogIndex(5), LogFixture.Entries(7, "e"));
        Assert.Equal(("1@1 2@3 7@5", new Term(7)), (Show(terms), terms.LastTerm));
        terms.Restart(new Term(9));
        Assert.Equal(("", new Term(9), new Term(9)), (Show(terms), terms.StartTerm, terms.LastTerm));
    }

    /// <summary>Entries 1 to 7 of the terms 1, 1, 2, 2, 2, 5, 5.</summary>
    private static GroupTerms Filled()
    {
        GroupTerms terms = new();
        terms.Add(new LogIndex(1), LogFixture.Entries(1, "a", "b"));
        terms.Add(new LogIndex(3), LogFixture.Entries(2, "c"));
        terms.Add(new LogIndex(4), [.. LogFixture.Entries(2, "d", "e"), .. LogFixture.Entries(5, "f", "g")]);
        return terms;
    }

    private static string Show(GroupTerms terms) =>
        string.Join(' ', terms.Runs.Select(run => $"{run.Term}@{run.First}"));
}
