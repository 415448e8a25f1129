using System.Text;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Benchmark;

/// <summary>Which keys the transactions of a run have: how many, of which partitions, and each once.</summary>
public sealed class TransactionKeysTests
{
    [Theory]
    [InlineData("", 1)]
    [InlineData("--reads 3 --writes 1", 1)]
    [InlineData("--reads 0 --writes 1", 1)]
    [InlineData("--buckets 16", 1)]
    [InlineData("--partitions 2", 2)]
    [InlineData("--partitions 3 --reads 5 --writes 4", 3)]
    [InlineData("--partitions 2 --buckets 16", 2)]
    public async Task Keys_lie_in_as_many_partitions_as_were_asked_for(string arguments, int partitions)
    {
        BenchCommand command = BenchLine.Read($"-c a --workload transaction --seed 1 --key-space 100 {arguments}");
        int reads = command.Options.OfWorkload[TransactionKeys.Reads];
        int writes = command.Options.OfWorkload[TransactionKeys.Writes];
        TransactionKeys keys = new(new KeySpace(100, command.Options.Buckets), command.Options);
        await keys.PrepareAsync(new FakeTarget { Partitions = 3 }, CancellationToken.None);
        SlotMap map = SlotMap.Initial(3);
        SplitMix random = new(3, 0);
        HashSet<string> written = [];
        HashSet<string> read = [];
        for (int i = 0; i < 2_000; i++)
        {
            TransactionInput input = keys.Choose(Draw.From(ref random), new byte[1]);
            string[] all = [.. input.Reads, .. input.Writes];
            Assert.Equal((reads, writes), (input.Reads.Count, input.Writes.Count));
            Assert.Distinct(all);
            Assert.Equal(
                partitions, all.Select(key => map.PartitionOf(Encoding.UTF8.GetBytes(key))).Distinct().Count());
            written.UnionWith(input.Writes);
            read.UnionWith(input.Reads);
        }

        // What is read is written by others.
        Assert.True(read.Intersect(written).Count() >= read.Count * 3 / 4, $"{read.Count} keys");
    }

    [Theory]
    [InlineData(1, "", "--partitions: the keys lie in 1 of the cluster's 1 partitions; 2 are needed.")]
    [InlineData(3, "--key-space 1", "--partitions: the keys lie in 1 of the cluster's 3 partitions; 2 are needed.")]
    public async Task Too_few_partitions_end_the_run(int partitions, string arguments, string expected)
    {
        string line = $"-c a --workload transaction --partitions 2 --duration 0.05 --warmup 0 {arguments}";
        BenchOutcome outcome = await BenchOutcome.RunAsync(new FakeTarget { Partitions = partitions }, line);
        Assert.Equal(1, outcome.ExitCode);
        Assert.Equal($"kahuna-bench: {expected}", outcome.ErrorLines[^1]);
    }
}
