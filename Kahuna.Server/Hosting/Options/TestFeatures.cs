using System.Collections;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// What tests do to a node that nobody else may: variables that are refused unless the cluster's id begins with
/// <c>test-</c>; the id is bound to each data directory. <c>KAHUNA_TEST_FEATURE_LEVEL=next</c> makes this build support
/// one feature level more than it has, so that a test can upgrade a cluster without a second build. A cluster that is
/// raised so can never be used with a release again. <c>KAHUNA_TEST_DEAF_FILE</c> names a file with the ids of the
/// nodes whose frames this one drops; it is read again and again. Stateless.
/// </summary>
internal static class TestFeatures
{
    public const string Variable = "KAHUNA_TEST_FEATURE_LEVEL";

    /// <summary>Names the file of nodes whose frames are dropped.</summary>
    public const string DeafVariable = "KAHUNA_TEST_DEAF_FILE";

    /// <summary>The value that raises the level.</summary>
    public const string Next = "next";

    /// <summary>The start of the ids of clusters in which the variable is obeyed.</summary>
    public const string ClusterPrefix = "test-";

    /// <summary>The options with what the variables say; an error if they may not be set.</summary>
    public static NodeOptions Apply(NodeOptions options, IDictionary environment, List<string> errors)
    {
        bool isTest = options.ClusterId.StartsWith(ClusterPrefix, StringComparison.Ordinal);
        if (Value(environment, DeafVariable) is { Length: > 0 } file)
        {
            if (!isTest)
            {
                errors.Add(
                    $"{DeafVariable} is for tests: {OptionSetting.ClusterId.Flag} begins with '{ClusterPrefix}'. "
                        + "Remove the variable.");
            }

            options = options with { DeafFile = file };
        }

        string text = Value(environment, Variable);
        if (text.Length == 0)
        {
            return options;
        }

        if (text != Next || !isTest)
        {
            errors.Add(
                $"{Variable} is for tests: its value is '{Next}', and {OptionSetting.ClusterId.Flag} begins with "
                    + $"'{ClusterPrefix}'. Remove the variable.");
        }

        return options with { Features = FeatureLevels.SupportedInTest };
    }

    private static string Value(IDictionary environment, string name) =>
        (environment[name] as string ?? string.Empty).Trim();
}
