using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Targets.Etcd;
using Kahuna.Benchmark.Targets.Redis;
using Kahuna.Benchmark.Targets.Sdk;

namespace Kahuna.Benchmark;

/// <summary>Creates the target that a command line names. Static.</summary>
internal static class TargetFactory
{
    public static ITarget Create(BenchOptions options) => options.Target switch
    {
        TargetKind.Etcd => new EtcdTarget(options),
        TargetKind.Redis => new RedisTarget(options),
        _ => new KahunaTarget(options),
    };
}
