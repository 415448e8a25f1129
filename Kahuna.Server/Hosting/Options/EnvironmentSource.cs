using System.Collections;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Reads the options of the environment: <c>KAHUNA_…</c>. An empty variable counts as absent. Pure.</summary>
internal static class EnvironmentSource
{
    /// <summary>Variables of the command line, which may be set where a node is started.</summary>
    private static readonly string[] s_commandLine =
    [
        "KAHUNA_CONTEXTS", "KAHUNA_CONTEXT", "KAHUNA_ENDPOINTS", "KAHUNA_USER", "KAHUNA_PASSWORD_FILE",
        "KAHUNA_TOKEN_FILE", "KAHUNA_COMPLETION_TIME", "KAHUNA_LOCK", "KAHUNA_FENCING_TOKEN",
    ];

    /// <summary>Variables of the project's other programs and tests.</summary>
    private static readonly HashSet<string> s_others =
    [
        "KAHUNA_DEV_CERT_DIR",
        "KAHUNA_CLUSTER_DIR",
        "KAHUNA_CLUSTER_PORTS",
        "KAHUNA_CLUSTER_TIMEOUT",
        "KAHUNA_ROOT",
        "KAHUNA_UPDATE_GOLDEN",
        .. s_commandLine,
    ];

    /// <summary>
    /// Prefixes of foreign variables. Kubernetes sets KAHUNA_SERVICE_… and KAHUNA_PORT… next to a service named
    /// "kahuna"; the other two belong to kahuna-bench and the tests.
    /// </summary>
    private static readonly string[] s_otherPrefixes =
        ["KAHUNA_SERVICE_", "KAHUNA_PORT", "KAHUNA_BENCH_", "KAHUNA_TEST_"];

    public static void Read(IDictionary environment, Dictionary<OptionSetting, GivenValue> values, List<string> errors)
    {
        foreach (DictionaryEntry entry in environment)
        {
            string name = (string)entry.Key;
            string text = (entry.Value as string ?? string.Empty).Trim();
            if (!name.StartsWith(OptionSetting.EnvironmentPrefix, StringComparison.Ordinal) || text.Length == 0)
            {
                continue;
            }

            if (OptionSetting.All.FirstOrDefault(setting => setting.Variable == name) is OptionSetting known)
            {
                values[known] = new GivenValue(text, name);
            }
            else if (!s_others.Contains(name)
                && !s_otherPrefixes.Any(prefix => name.StartsWith(prefix, StringComparison.Ordinal)))
            {
                string suggestion = NearestName.Suggestion(name, OptionSetting.All.Select(setting => setting.Variable));
                errors.Add($"Unknown environment variable {OneLine.Of(name)}{suggestion}");
            }
        }
    }
}
