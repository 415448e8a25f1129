using Xunit.Abstractions;

namespace Kahuna.Tests.Simulation;

/// <summary>A set of seeds that must be clean, in slices, and that must have shown something.</summary>
// In this order the slices do the work one by one, and the look at all of them finds it done: no test is silent for
// long.
[TestCaseOrderer("Kahuna.Tests.Simulation.ByName", "Kahuna.Tests")]
public sealed class SeedTests(SeedResults results, ITestOutputHelper output) : IClassFixture<SeedResults>
{
    public static TheoryData<int> Slices => [.. Enumerable.Range(0, SeedResults.Slices)];

    [Theory]
    [MemberData(nameof(Slices))]
    public void Seeds_break_no_rule(int slice)
    {
        SimResult? first = results.Slice(slice).First;
        Assert.True(
            first is null,
            $"seed {first?.Seed}: {first?.Violation?.Words}; replay: scripts/sim.sh --seed {first?.Seed} "
                + $"--seconds {SeedResults.Seconds}");
    }

    /// <summary>What is rare needs most of the seeds to come up.</summary>
    [Fact]
    public void Seeds_show_every_fault_and_every_outcome()
    {
        IEnumerable<string> missed = results.All().Missed;
        output.WriteLine($"Checked: {results.Ran} slices of {SeedResults.SliceSeeds} seeds");
        if (results.Ran.Done >= SeedResults.Slices / 2)
        {
            Assert.Empty(missed);
        }
    }
}
