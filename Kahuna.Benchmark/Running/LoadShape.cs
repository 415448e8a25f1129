using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.Running;

/// <summary>What is sent where: all that the workers of a run share. Immutable.</summary>
internal sealed record LoadShape(BenchOptions Options, ITarget Target, WorkloadRun Workload, FailureLog Failures);
