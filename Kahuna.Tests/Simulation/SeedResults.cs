using System.Collections.Concurrent;

namespace Kahuna.Tests.Simulation;

/// <summary>The results of the seeds that are part of the tests. Each slice of them runs once, whichever test asks first. Any thread.</summary>
public sealed class SeedResults
{
    /// <summary>Seeds in one slice: few enough that a run that goes on is seen to go on, also beside other work on a slow processor.</summary>
    public const int SliceSeeds = 10;

    /// <summary>Slices: 500 seeds in all.</summary>
    public const int Slices = 50;

    /// <summary>Virtual seconds of load and faults in each.</summary>
    public const string Seconds = "60";

    private readonly ConcurrentDictionary<int, Lazy<SimSummary>> _slices = new();

    internal SimSummary Slice(int slice) => _slices.GetOrAdd(slice, static number => new Lazy<SimSummary>(() => Run(number))).Value;

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

    private static SimSummary Run(int slice) =>
        SimCommand.Work(Options((slice * SliceSeeds) + 1, (slice + 1) * SliceSeeds), null, TextWriter.Null);

    private static SimOptions Options(int first, int last) => SimOptions.Parse(["--seeds", $"{first}..{last}", "--seconds", Seconds], out _)!;
}
