namespace Kahuna.Tests.Simulation;

/// <summary>A set of seeds that must be clean, in slices, and that must have shown something.</summary>
public sealed class SeedTests(SeedResults results) : IClassFixture<SeedResults>
{
    public static TheoryData<int> Slices => [.. Enumerable.Range(0, SeedResults.Slices)];

    [Theory]
    [MemberData(nameof(Slices))]
    public void Seeds_break_no_rule(int slice)
    {
        SimResult? first = results.Slice(slice).First;
        Assert.True(first is null, $"seed {first?.Seed}: {first?.Violation?.Words}; replay: scripts/sim.sh --seed {first?.Seed} --seconds {SeedResults.Seconds}");
    }

    [Fact]
    public void Seeds_show_every_fault_and_every_outcome() => Assert.Empty(results.All().Missed);
}
