using BenchmarkDotNet.Attributes;
using Kahuna.Benchmark.Recording;

namespace Kahuna.Benchmark.Micro;

/// <summary>Recording a latency, and what the report does once with all of them. Run by BenchmarkDotNet.</summary>
[MemoryDiagnoser]
public class RecordingBenchmark
{
    private const int Samples = 4096;
    private readonly long[] _samples = new long[Samples];
    private readonly LatencyCounts _counts = new();
    private readonly HdrHistogram _histogram = new();

    [GlobalSetup]
    public void Setup()
    {
        Random random = new(1);
        for (int i = 0; i < Samples; i++)
        {
            _samples[i] = (long)Math.Exp(random.NextDouble() * 14);
            _histogram.Record(_samples[i]);
        }
    }

    [Benchmark(OperationsPerInvoke = Samples)]
    public void Record()
    {
        foreach (long sample in _samples)
        {
            _counts.Record(sample);
        }
    }

    [Benchmark]
    public long Percentile() => _histogram.ValueAtPercentile(99.9);

    [Benchmark]
    public int Encode() => HistogramEncoding.Compress(_histogram).Length;
}
