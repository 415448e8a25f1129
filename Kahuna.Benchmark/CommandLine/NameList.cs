using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.CommandLine;

/// <summary>Names of workloads as a part of a sentence. Static, any thread.</summary>
internal static class NameList
{
    /// <summary>As <c>set, get or mixed</c>.</summary>
    public static string Or(IEnumerable<Workload> workloads) => Join(workloads, "or");

    /// <summary>As <c>get and mixed</c>.</summary>
    public static string And(IEnumerable<Workload> workloads) => Join(workloads, "and");

    private static string Join(IEnumerable<Workload> workloads, string word)
    {
        string[] names = [.. workloads.Select(static workload => workload.Name)];
        return names.Length < 2 ? string.Concat(names) : $"{string.Join(", ", names[..^1])} {word} {names[^1]}";
    }
}
