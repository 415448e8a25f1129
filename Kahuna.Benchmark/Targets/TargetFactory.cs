using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets.Redis;

namespace Kahuna.Benchmark.Targets;

/// <summary>Creates the target that a command line names. Static.</summary>
internal static class TargetFactory
{
    public static ITarget Create(BenchOptions options) => options.Target switch
    {
        TargetKind.Redis => new RedisTarget(options),
        _ => throw new TargetException($"--target {OptionTable.NameOf(options.Target)} is not available in this build."),
    };
}
