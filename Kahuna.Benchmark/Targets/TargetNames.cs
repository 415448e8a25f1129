namespace Kahuna.Benchmark.Targets;

/// <summary>The targets by their names on the command line and in reports. Static, any thread.</summary>
internal static class TargetNames
{
    public static string Of(TargetKind target) => target switch
    {
        TargetKind.Etcd => "etcd",
        TargetKind.Redis => "redis",
        _ => "kahuna",
    };
}
