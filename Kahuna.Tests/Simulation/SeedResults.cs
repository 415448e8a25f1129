using System.Collections.Concurrent;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// The results of the seeds that are part of the tests. Each slice of them runs once, whichever test asks first. Any
/// thread.
/// </summary>
public sealed class SeedResults
{
    /// <summary>
    /// Seeds in one slice: few enough that a run that goes on is seen to go on, also beside other work on a slow
    /// processor.
    /// </summary>
    public const int SliceSeeds = 10;

    /// <summary>Slices: 500 seeds in all.</summary>
    public const int Slices = 50;

    /// <summary>Virtual seconds of load and faults in each.</summary>
    public const string Seconds = "60";

    private readonly ConcurrentDictionary<int, Lazy<SimSummary>> _slices = new();
    private readonly Lock _lock = new();

    /// <summary>Slices that were run.</summary>
    internal Repeats Ran { get; } = new(Slices, least: 5, share: 200);

    /// <summary>What its seeds showed; nothing if time was over before it began.</summary>
    internal SimSummary Slice(int slice) =>
        _slices.GetOrAdd(slice, number => new Lazy<SimSummary>(() => Run(number))).Value;

    /// <summary>All slices as one set.</summary>
    internal SimSummary All()
    {
        SimSummary all = new(Options(1, Slices * SliceSeeds));
        foreach (SimResult result in Enumerable.Range(0, Slices).SelectMany(slice => Slice(slice).Results))
        {
            all.Add(result);
        }

        return all;
    }

    private SimSummary Run(int slice)
    {
        SimOptions options = Options((slice * SliceSeeds) + 1, (slice + 1) * SliceSeeds);
        lock (_lock)
        {
            if (!Ran.Next())
            {
                return new SimSummary(options);
            }
        }

        return SimCommand.Work(options, null, TextWriter.Null);
    }

    private static SimOptions Options(int first, int last) =>
        SimOptions.Parse(["--seeds", $"{first}..{last}", "--seconds", Seconds], out _)!;
}
