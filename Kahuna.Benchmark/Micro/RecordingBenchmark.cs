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
    private readonly HdrHistogram.LongHistogram _package = new(1, LatencyHistogram.HourMicroseconds, 3);
    private readonly LatencyHistogram _histogram = new();

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

    /// <summary>What the workers would pay with the package's recorder.</summary>
    [Benchmark(OperationsPerInvoke = Samples)]
    public void RecordInThePackage()
    {
        foreach (long sample in _samples)
        {
            _package.RecordValue(sample);
        }
    }

    [Benchmark(OperationsPerInvoke = Samples, Baseline = true)]
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
    public int Encode() => _histogram.ToBase64().Length;
}
