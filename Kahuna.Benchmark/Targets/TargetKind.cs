namespace Kahuna.Benchmark.Targets;

/// <summary>The systems that this tool can put under load.</summary>
internal enum TargetKind
{
    Kahuna,
    Etcd,
    Redis,
}
