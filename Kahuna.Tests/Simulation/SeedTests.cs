namespace Kahuna.Tests.Simulation;

/// <summary>A set of seeds that must be clean, in slices, and that must have shown something.</summary>
public sealed class SeedTests(SeedResults results) : IClassFixture<SeedResults>
{
    public static TheoryData<int> Slices => [.. Enumerable.Range(0, SeedResults.Slices)];

    [Theory]
    [MemberData(nameof(Slices))]
    public void Seeds_break_no_rule(int slice) => Assert.Null(results.Slice(slice).First?.Violation?.Words);

    [Fact]
    public void Seeds_show_every_fault_and_every_outcome() => Assert.Empty(results.All().Missed);
}
