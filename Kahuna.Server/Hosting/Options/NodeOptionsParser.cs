using System.Collections;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Reads a node's options from a JSON file, the environment and the command line, and checks them together. Each source
/// overrides the one before. Reads files that the options name; changes nothing. Stateless.
/// </summary>
internal static class NodeOptionsParser
{
    public static NodeOptionsResult Parse(string[] args, IDictionary environment)
    {
        List<string> errors = [];
        Dictionary<OptionSetting, GivenValue> fromArguments = [];
        if (new CommandLineSource().Read(args, fromArguments, errors, out string? text))
        {
            return new NodeOptionsResult { Text = text };
        }

        Dictionary<OptionSetting, GivenValue> values = [];
        Dictionary<OptionSetting, GivenValue> fromEnvironment = [];
        EnvironmentSource.Read(environment, fromEnvironment, errors);
        if (fromArguments.TryGetValue(OptionSetting.Config, out GivenValue config)
            || fromEnvironment.TryGetValue(OptionSetting.Config, out config))
        {
            JsonFileSource.Read(config, values, errors);
        }

        Override(values, fromEnvironment);
        Override(values, fromArguments);

        // All errors are reported at once. An unreadable source may hold what another option needs, so missing options
        // are not reported then.
        NodeOptions options = new NodeOptionsValidation(values, errors, isComplete: errors.Count == 0).Read();
        options = TestFeatures.Apply(options, environment, errors);
        return errors.Count > 0
            ? new NodeOptionsResult { Errors = errors }
            : new NodeOptionsResult { Options = options };
    }

    private static void Override(
        Dictionary<OptionSetting, GivenValue> values, Dictionary<OptionSetting, GivenValue> stronger)
    {
        foreach ((OptionSetting setting, GivenValue value) in stronger)
        {
            values[setting] = value;
        }
    }
}
