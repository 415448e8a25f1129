using System.Text.Json.Serialization;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// Everything that a run of scripts/scale.sh found out, as it is in the file of <c>--output</c>. Grows; one thread.
/// </summary>
internal sealed record ScaleFigures(Machine Machine, ScaleOptions Options)
{
    public Dictionary<string, object> Sections { get; } = new(StringComparer.Ordinal);

    public List<ScaleFloor> Floors { get; } = [];

    public static ScaleFigures Of(Measurement run) => new(
        Machine.Current(run.FileSystem),
        new ScaleOptions(
            run.Options.Text("keys"), run.Options.Number("stored"),
            run.Options.Number("seconds") is > 0 and int seconds ? seconds : null,
            run.Options.Number("rounds"), run.Options.Number("minutes")));
}

/// <summary>What the run was asked for.</summary>
internal sealed record ScaleOptions(string Keys, int Stored, int? Seconds, int Rounds, int Minutes);

/// <summary>A floor, with its value and limit, or without them when it only holds or does not.</summary>
internal sealed record ScaleFloor(string Section, string What)
{
    [JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingNull)]
    public double? Value { get; init; }

    [JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingNull)]
    public string? Direction { get; init; }

    [JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingNull)]
    public double? Limit { get; init; }

    public bool Ok { get; init; }
}
