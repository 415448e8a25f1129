using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Tests.Benchmark;

/// <summary>Reads command lines of the tool. Stateless.</summary>
internal static class BenchLine
{
    public static BenchCommand Read(string arguments)
    {
        OptionTable table = new(WorkloadList.All);
        string[] words = arguments.Split(' ', StringSplitOptions.RemoveEmptyEntries);
        return new OptionReader(table, table.Root.Parse(words)).Read();
    }
}
