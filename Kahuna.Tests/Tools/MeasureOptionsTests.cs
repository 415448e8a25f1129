namespace Kahuna.Tests.Tools;

/// <summary>Options of the measuring programs and their defaults.</summary>
public sealed class MeasureOptionsTests
{
    private const string Defaults = "--rounds=3 --keys=10,20 --output=";

    [Fact]
    public void Defaults_count_unless_the_option_is_given()
    {
        MeasureOptions options = MeasureOptions.Read(Defaults, ["--rounds", "7"])!;
        Assert.Equal(7, options.Number("rounds"));
        Assert.Equal([10, 20], options.Numbers("keys"));
        Assert.Equal("", options.Text("output"));
    }

    [Theory]
    [InlineData("--no-such-option", "1")]
    [InlineData("--rounds")]
    public void Unknown_and_incomplete_options_are_refused(params string[] arguments) =>
        Assert.Null(MeasureOptions.Read(Defaults, arguments));

    [Theory]
    [InlineData("the first argument must be one of")]
    [InlineData("the first argument must be one of", "no-such-program")]
    [InlineData("unknown option; scripts/scale.sh --help names those that there are", "scale", "--no-such-option", "1")]
    public void Bad_usage_ends_with_2(string expected, params string[] arguments)
    {
        StringWriter errors = new();
        Assert.Equal(2, MeasureCommand.Run(arguments, TextWriter.Null, errors));
        Assert.Contains(expected, errors.ToString(), StringComparison.Ordinal);
    }
}
