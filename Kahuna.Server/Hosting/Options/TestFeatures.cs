using System.Collections;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Makes this build support one feature level more than it has, so that a test can upgrade a cluster without a second
/// build: the variable <c>KAHUNA_TEST_FEATURE_LEVEL</c> is <c>next</c>. A cluster that is raised so can never be used
/// with a release again. So the variable is refused unless the cluster's id begins with <c>test-</c>; the id is bound
/// to each data directory. Stateless.
/// </summary>
internal static class TestFeatures
{
    public const string Variable = "KAHUNA_TEST_FEATURE_LEVEL";

    /// <summary>The value that raises the level.</summary>
    public const string Next = "next";

    /// <summary>The start of the ids of clusters in which the variable is obeyed.</summary>
    public const string ClusterPrefix = "test-";

    /// <summary>The options with the raised levels, if the variable is set; an error if it may not be.</summary>
    public static NodeOptions Apply(NodeOptions options, IDictionary environment, List<string> errors)
    {
        string text = (environment[Variable] as string ?? string.Empty).Trim();
        if (text.Length == 0)
        {
            return options;
        }

        if (text != Next || !options.ClusterId.StartsWith(ClusterPrefix, StringComparison.Ordinal))
        {
            errors.Add(
                $"{Variable} is for tests: its value is '{Next}', and {OptionSetting.ClusterId.Flag} begins with "
                    + $"'{ClusterPrefix}'. Remove the variable.");
        }

        return options with { Features = FeatureLevels.SupportedInTest };
    }
}
