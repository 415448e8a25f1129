using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>A validated command line: what is to be done, and how. Immutable.</summary>
/// <param name="Workload">What is done.</param>
/// <param name="Options">How.</param>
/// <param name="Warnings">What is told before the run.</param>
internal sealed record BenchCommand(Workload Workload, BenchOptions Options, IReadOnlyList<string> Warnings);
