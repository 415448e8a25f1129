using System.Collections;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Hosting;

/// <summary>A node may be started where the variables of the command line are set.</summary>
public sealed class CommandLineVariablesTests
{
    [Fact]
    public void Variables_of_the_command_line_are_none_of_a_node()
    {
        string source = string.Concat(Directory.EnumerateFiles(
            Repository.FullPath("Kahuna.Cli"), "*.cs", SearchOption.AllDirectories)
            .Where(static file => !file.Contains("/obj/", StringComparison.Ordinal)).Select(File.ReadAllText));
        string[] names = [.. Regex.Matches(source, "KAHUNA_[A-Z_]+").Select(static found => found.Value).Distinct()];
        Assert.Contains("KAHUNA_CONTEXTS", names);
        Hashtable environment = [];
        foreach (string name in names)
        {
            environment[name] = "x";
        }

        Dictionary<OptionSetting, GivenValue> values = [];
        List<string> errors = [];
        EnvironmentSource.Read(environment, values, errors);
        Assert.Empty(errors);
        Assert.Equal([OptionSetting.TrustedCa], values.Keys);
    }
}
