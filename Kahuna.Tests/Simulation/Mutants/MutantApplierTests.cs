namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>Planted bugs hold on to members and tokens, and say what is wrong when they no longer apply.</summary>
public sealed class MutantApplierTests
{
    private const string Roles = """
        namespace Sample.Raft;

        internal sealed class Roles(int limit)
        {
            private int _votes = 1;

            public bool IsFull => _votes >= limit;

            // Counts with _votes += count; and logs.
            public Roles()
                : this(1) => _votes = 0;

            public void Take(int count)
            {
                int before = _votes;
                _votes += count;
                Log($"{before} of {limit}");
                Log("_votes += count;");
            }

            public void Take(int count, string reason)
            {
                Log(reason);
            }

            private static void Log(string text) => Console.WriteLine(text);

            internal readonly record struct Vote(int From)
            {
                public bool IsOwn(int self) => From == self;
            }
        }
        """;

    [Fact]
    public void A_replacement_changes_the_anchor_and_nothing_else() => Assert.Equal(
        Roles.Replace("_votes >= limit", "_votes > limit", StringComparison.Ordinal),
        Apply(Roles, "in: Roles.IsFull", "replace: _votes >= limit", "with: _votes > limit"));

    [Fact]
    public void Strings_and_comments_are_no_places_of_an_anchor() => Assert.Equal(
        Roles.Replace("        _votes += count;\n", "        \n", StringComparison.Ordinal),
        Apply(Roles, "in: Roles", "remove: _votes += count;"));

    [Fact]
    public void Text_is_inserted_before_and_behind_an_anchor_and_added_to_a_type()
    {
        string changed = Apply(Roles,
            "in: Roles.Take",
            "before: _votes += count;",
            "insert: count++;",
            "after: _votes += count;",
            "insert:",
            "  if (count > 1)",
            "  {",
            "      count--;",
            "  }",
            "in: Roles",
            "add: private int _more;");
        Assert.Contains(
            "count++;\n        _votes += count;\n        if (count > 1)", changed, StringComparison.Ordinal);
        Assert.EndsWith("    private int _more;\n}", changed, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("int before = _votes;", "int earlier = _votes;")]
    [InlineData("_votes += count;\n", "_votes\n            += // all of them\n            count;\n")]
    [InlineData("namespace Sample.Raft;", "namespace Sample.Elsewhere.Roles;")]
    [InlineData("    public void Take(int count)\n", "    public async Task Take([Positive] int count, int more = 0)\n")]
    [InlineData("Log($\"{before} of {limit}\");", "if (count > 0) { Log(\"more\"); }")]
    public void An_anchor_holds_when_what_is_around_it_changes(string old, string changed)
    {
        string source = Roles.Replace(old, changed, StringComparison.Ordinal);
        Assert.NotEqual(Roles, source);
        Assert.Contains(
            "_votes -= count;",
            Apply(source, "in: Roles.Take", "replace: _votes += count", "with: _votes -= count"),
            StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("Vote.IsOwn", "From == self")]
    [InlineData("Roles.Vote.IsOwn", "From == self")]
    [InlineData("Raft.Roles._votes", "1")]
    [InlineData("Roles.Take(int, string)", "Log(reason)")]
    [InlineData("Roles.Roles", "_votes = 0")]
    public void Nested_types_fields_overloads_and_constructors_have_names(string scope, string anchor) =>
        Assert.Contains(
            "self.Changed",
            Apply(Roles, $"in: {scope}", $"replace: {anchor}", "with: self.Changed"),
            StringComparison.Ordinal);

    [Theory]
    [InlineData("Roles.Take", "_votes -= count", "Roles.Take (Raft/Roles.cs) does not hold the anchor \"_votes -= count\". Closest is line 16: \"_votes += count\". If a name was renamed, rename it here")]
    [InlineData("Roles.IsFull", "_votes += count", "The anchor is in Roles.Take (Raft/Roles.cs:16): name that in \"in:\"")]
    [InlineData("Roles.Take", "Log(", "Roles.Take (Raft/Roles.cs) holds the anchor 3 times, on line 17, 18, 23; take the tokens beside it")]
    [InlineData("Parts.Take", "_votes += count", "there is no type Parts in Kahuna.Client or Kahuna.Server or Kahuna.Cli. The anchor is in Roles.Take")]
    [InlineData("Roles.Give", "_votes += count", "Sample.Raft.Roles (Raft/Roles.cs) has no member Give; it has _votes, IsFull, Roles, Take, Log")]
    [InlineData("Roles.Take(long)", "_votes += count", "Sample.Raft.Roles (Raft/Roles.cs) has no member Take(long)")]
    public void What_does_not_apply_says_what_to_do(string scope, string anchor, string error) =>
        Assert.Contains(error, Fail(Roles, $"in: {scope}", $"replace: {anchor}", "with: 0"), StringComparison.Ordinal);

    [Fact]
    public void Of_two_types_with_one_name_the_namespace_decides()
    {
        SourceFile[] files =
            [new("Raft/Roles.cs", Roles), new("Api/Roles.cs", "namespace Sample.Api; enum Roles { None = 0 }")];
        Mutant bug = Read("in: Roles", "replace: None = 0", "with: None = 1");
        new MutantApplier(new MutantSource(files)).Apply(bug, out IReadOnlyList<string> errors);
        Assert.Contains(
            "Roles is ambiguous: Sample.Raft.Roles, Sample.Api.Roles; put a part of the namespace in front",
            Assert.Single(errors),
            StringComparison.Ordinal);
        bug = Read("in: Api.Roles.None", "replace: 0", "with: 1");
        Assert.Equal(["Api/Roles.cs"], new MutantApplier(new MutantSource(files)).Apply(bug, out _).Keys);
    }

    [Theory]
    [InlineData("_votes += count", "_votes  +=  count", "stays as it is")]
    [InlineData("_votes += count", "(_votes += count", "would not be C#")]
    public void A_bug_changes_the_source_and_leaves_source(string anchor, string text, string error) =>
        Assert.Contains(
            error, Fail(Roles, "in: Roles.Take", $"replace: {anchor}", $"with: {text}"), StringComparison.Ordinal);

    [Fact]
    public void Edits_must_not_overlap() => Assert.Contains(
        "changes what another edit of this bug changes",
        Fail(Roles, "in: Roles.Take", "remove: _votes += count;", "replace: += count", "with: -= count"),
        StringComparison.Ordinal);

    private static Mutant Read(params string[] edits) =>
        MutantReader.Read("sample", ["# What.", "# needs: much", "", .. edits]);

    private static string Apply(string source, params string[] edits)
    {
        IReadOnlyDictionary<string, string> changed = new MutantApplier(
            new MutantSource([new SourceFile("Raft/Roles.cs", source)]))
            .Apply(Read(edits), out IReadOnlyList<string> errors);
        Assert.Empty(errors);
        return changed["Raft/Roles.cs"];
    }

    private static string Fail(string source, params string[] edits)
    {
        new MutantApplier(new MutantSource([new SourceFile("Raft/Roles.cs", source)])).Apply(
            Read(edits), out IReadOnlyList<string> errors);
        return Assert.Single(errors);
    }
}
