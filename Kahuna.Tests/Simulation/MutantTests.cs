using Kahuna.Tests.Simulation.Mutants;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// The planted bugs apply to the present source. That the simulator finds them is shown by scripts/mutants.sh.
/// </summary>
public sealed class MutantTests
{
    /// <summary>
    /// A finding names the file and line of the planted bug, and what to write there: docs/simulation.md, "Planted
    /// bugs". <c>dotnet Kahuna.Tests.dll mutate --check</c> finds the same in a second.
    /// </summary>
    [Fact]
    public void Each_applies_to_the_present_source() =>
        Findings.AssertNone(MutateCommand.Check(Repository.Root, MutantFolder.Names));

    [Fact]
    public void There_are_enough_of_them_and_each_is_described()
    {
        Assert.True(MutantFolder.Names.Count >= 36, $"{MutantFolder.Names.Count} planted bugs");
        string table = string.Join('\n', Repository.Lines(MutantFolder.Path + "README.md"));
        Findings.AssertNone(MutantFolder.Names
            .Where(name => !table.Contains($"| {name} |", StringComparison.Ordinal))
            .Select(static name => $"{name} is not in the table"));
    }

    [Fact]
    public void Each_has_been_looked_for_and_the_page_says_with_what_result()
    {
        string page = string.Join('\n', Repository.Lines("docs/simulation.md"));
        Findings.AssertNone(MutantFolder.Names
            .Where(name => !page.Contains($"\n| {name} |", StringComparison.Ordinal))
            .Where(name => !page.Contains($"`{name}`", StringComparison.Ordinal))
            .Select(static name => $"{name} has no row in docs/simulation.md, and no sentence says why"));
    }
}
