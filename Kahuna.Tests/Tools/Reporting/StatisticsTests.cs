namespace Kahuna.Tests.Tools.Reporting;

/// <summary>Medians, ratios, limits and cells of reports.</summary>
public sealed class StatisticsTests
{
    [Theory]
    [InlineData(3.0, 3.0)]
    [InlineData(2.0, 9.0, 1.0, 2.0)]
    [InlineData(2.5, 1.0, 9.0, 2.0, 3.0)]
    public void The_median_is_in_the_middle(double expected, params double[] values) =>
        Assert.Equal(expected, values.Median());

    [Fact]
    public void Nothing_has_no_median() =>
        Assert.Throws<InvalidOperationException>(() => Array.Empty<double>().Median());

    [Theory]
    [InlineData(6.0, 4.0, 1.5)]
    [InlineData(6.0, 0.0, null)]
    [InlineData(6.0, null, null)]
    [InlineData(null, 4.0, null)]
    public void A_ratio_needs_both_values(double? value, double? divisor, double? expected) =>
        Assert.Equal(expected, Statistics.Ratio(value, divisor));

    [Fact]
    public void Rounds_are_compared_one_by_one()
    {
        // Half as fast in each round, although the machine was ten times as fast in the second.
        Assert.Equal(0.5, Statistics.MedianRatio([50, 500, 50], [100, 1000, 100]));
        Assert.Equal(2, Statistics.MedianRatio([6, 8, 9], [3, 0, 0]));
        Assert.Null(Statistics.MedianRatio([1, 2], []));
    }

    [Fact]
    public void A_limit_is_reached_at_its_value()
    {
        Assert.True(Limit.AtLeast(2).IsReached(2));
        Assert.False(Limit.AtLeast(2).IsReached(1.99));
        Assert.True(Limit.AtMost(2).IsReached(2));
        Assert.False(Limit.AtMost(2).IsReached(2.01));
        Assert.Equal(("at least", "at most"), (Limit.AtLeast(2).Direction, Limit.AtMost(2).Direction));
    }

    [Fact]
    public void A_table_aligns_its_columns()
    {
        StringWriter output = new();
        TextTable.Write(
            output, "title", [new("name", 6, IsLeft: true), new("rate", 9), new("ms", 6, 2)],
            [["set", 1234.5678, 0.126], ["get", 7, null]]);
        Assert.Equal(
            """

            title
            name         rate      ms
            -------------------------
            set         1,235    0.13
            get             7       -

            """,
            output.ToString());
    }
}
