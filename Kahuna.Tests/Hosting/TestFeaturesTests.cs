using System.Collections;
using Kahuna.Server.Hosting.Options;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Hosting;

/// <summary>The variable that raises a build's feature level is obeyed in clusters of tests only.</summary>
public sealed class TestFeaturesTests
{
    [Fact]
    public void A_test_s_cluster_gets_the_raised_level()
    {
        NodeOptionsResult result = Parse("next", "--cluster-id", "test-a");
        Assert.Equal(FeatureLevels.SupportedInTest, result.Options!.Features);
        Assert.Equal(FeatureLevels.Supported, Parse("", "--cluster-id", "test-a").Options!.Features);
        Assert.Equal(FeatureLevels.Supported, Parse(null).Options!.Features);
    }

    [Theory]
    [InlineData("next", "production")]
    [InlineData("next", "kahuna")]
    [InlineData("2", "test-a")]
    [InlineData("next", "atest-a")]
    public void Everything_else_is_refused(string value, string clusterId) => Assert.Equal(
        "KAHUNA_TEST_FEATURE_LEVEL is for tests: its value is 'next', and --cluster-id begins with 'test-'. Remove the "
            + "variable.",
        Assert.Single(Parse(value, "--cluster-id", clusterId).Errors));

    private static NodeOptionsResult Parse(string? value, params string[] args) =>
        NodeOptionsParser.Parse(args, new Hashtable { [TestFeatures.Variable] = value });
}
