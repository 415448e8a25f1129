using System.Collections;
using Kahuna.Server.Hosting.Options;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Hosting;

/// <summary>
/// The variables that raise a build's feature level, and cut a node off, are obeyed in clusters of tests only.
/// </summary>
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

    [Fact]
    public void Frames_of_peers_are_dropped_in_a_test_s_cluster_only()
    {
        Hashtable environment = new() { [TestFeatures.DeafVariable] = "/tmp/deaf" };
        Assert.Equal(
            "/tmp/deaf",
            NodeOptionsParser.Parse(["--cluster-id", "test-a"], environment).Options!.DeafFile);
        Assert.Null(Parse(null).Options!.DeafFile);
        Assert.Equal(
            "KAHUNA_TEST_DEAF_FILE is for tests: --cluster-id begins with 'test-'. Remove the variable.",
            Assert.Single(NodeOptionsParser.Parse(["--cluster-id", "production"], environment).Errors));
    }

    private static NodeOptionsResult Parse(string? value, params string[] args) =>
        NodeOptionsParser.Parse(args, new Hashtable { [TestFeatures.Variable] = value });
}
