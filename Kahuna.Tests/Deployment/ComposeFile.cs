using YamlDotNet.Core;
using YamlDotNet.Serialization;
using YamlDotNet.Serialization.NamingConventions;

namespace Kahuna.Tests.Deployment;

/// <summary>
/// The part of the Compose Specification that the compose file uses; other fields are errors. Read by tests, never
/// changed.
/// </summary>
internal sealed class ComposeFile
{
    public string Name { get; init; } = "";

    [YamlMember(Alias = "x-peers", ApplyNamingConventions = false)]
    public string Peers { get; init; } = "";

    [YamlMember(Alias = "x-node", ApplyNamingConventions = false)]
    public ComposeService Node { get; init; } = new();

    public Dictionary<string, ComposeService> Services { get; init; } = [];

    public Dictionary<string, object?> Volumes { get; init; } = [];

    /// <summary>Reads a compose file, with its merges.</summary>
    /// <exception cref="YamlException">It has a field that is none.</exception>
    public static ComposeFile Parse(string text)
    {
        using StringReader reader = new(text);
        return new DeserializerBuilder()
            .WithNamingConvention(UnderscoredNamingConvention.Instance)
            .Build()
            .Deserialize<ComposeFile>(new MergingParser(new Parser(reader)));
    }
}

/// <summary>A service. Read by tests, never changed.</summary>
internal sealed class ComposeService
{
    public string Image { get; init; } = "";

    public Dictionary<string, string> Build { get; init; } = [];

    public string Restart { get; init; } = "";

    public string StopGracePeriod { get; init; } = "";

    public bool ReadOnly { get; init; }

    public List<string> CapDrop { get; init; } = [];

    public List<string> SecurityOpt { get; init; } = [];

    public string MemLimit { get; init; } = "";

    public Dictionary<string, int> Ulimits { get; init; } = [];

    public ComposeHealth Healthcheck { get; init; } = new();

    public string Hostname { get; init; } = "";

    public Dictionary<string, string> Environment { get; init; } = [];

    public List<string> Ports { get; init; } = [];

    public List<string> Volumes { get; init; } = [];
}

/// <summary>A check of a service's health. Read by tests, never changed.</summary>
internal sealed class ComposeHealth
{
    public List<string> Test { get; init; } = [];

    public string Interval { get; init; } = "";

    public string Timeout { get; init; } = "";

    public int Retries { get; init; }

    public string StartPeriod { get; init; } = "";
}
