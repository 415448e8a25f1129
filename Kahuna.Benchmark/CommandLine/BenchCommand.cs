using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>A validated command line: what is to be done, and how. Immutable.</summary>
internal sealed record BenchCommand(Workload Workload, BenchOptions Options);
