using System.Collections.Concurrent;
using System.Text;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;
using Kahuna.Tests.Wire;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// Requests follow from the seed. The first ones of every workload are compared with a golden file: a run of an earlier
/// version can be repeated with this one.
/// </summary>
public sealed class RequestStreamTests
{
    private const int Requests = 12;

    private static readonly string[] s_runs =
    [
        "set", "set --key-space 20000 --buckets 4", "get", "mixed", "mixed --read-pct 90", "mixed --rate 1000",
        "lock", "lock --rate 1000", "handover", "sequence", "script", "batch --items 3", "transaction",
        "interactive --reads 1 --writes 1",
    ];

    [Fact]
    public async Task First_requests_are_those_of_the_seed()
    {
        StringBuilder text = new();
        foreach (string run in s_runs)
        {
            string line = run.Contains("--key-space", StringComparison.Ordinal) ? run : run + " --key-space 100";
            string[] first = await FirstAsync($"--workload {line} --seed-keys 0", Requests);
            text.Append("# ").Append(run).Append('\n').AppendJoin('\n', first).Append('\n');
        }

        // The writers of the seed are several: their order is not fixed.
        string[] seeds = await FirstAsync("--workload get --key-space 100 --seed-keys 5", 5);
        text.Append("# seeded keys\n").AppendJoin('\n', seeds.Order(StringComparer.Ordinal)).Append('\n');
        GoldenFile.Check("Benchmark/requests.txt", text.ToString());
    }

    [Fact]
    public async Task Same_seed_gives_the_same_requests()
    {
        string[] first = await RecordAsync("--seed 42");
        string[] second = await RecordAsync("--seed 42");
        string[] other = await RecordAsync("--seed 43");
        int common = Math.Min(first.Length, Math.Min(second.Length, other.Length));
        Assert.True(common > 50);
        Assert.Equal(first[..common], second[..common]);
        Assert.NotEqual(first[..common], other[..common]);
        Assert.Contains(first[..common], request => request.StartsWith("Get", StringComparison.Ordinal));
        Assert.Contains(first[..common], request => request.StartsWith("Set", StringComparison.Ordinal));

        static async Task<string[]> RecordAsync(string seed)
        {
            ConcurrentQueue<string> requests = new();
            FakeTarget target = new((operation, key, value) =>
            {
                requests.Enqueue($"{operation} {key} {Convert.ToHexString(value.Span)}");
                return new ValueTask<OperationResult>(OperationResult.Success);
            });
            string line = $"-c a --workload mixed --concurrency 1 --key-space 100 --warmup 0 {seed}";
            string[] recorded = [];
            await BenchOutcome.RunLongEnoughAsync(target, line, _ =>
            {
                // The first hundred store the keys, again in each run.
                recorded = [.. requests.Skip(100).Take(10_000)];
                requests.Clear();
                return recorded.Length > 100;
            });
            return recorded;
        }
    }

    [Theory]
    [InlineData(0)]
    [InlineData(30)]
    [InlineData(100)]
    public async Task Reads_have_their_share(int percent)
    {
        HashSet<string> keys = [];
        int reads = 0;
        const int Requests = 100_000;
        FakeTarget target = new((call, key, payload) =>
        {
            reads += call == FakeCall.Get ? 1 : 0;
            keys.Add(key);
            Assert.Equal(call == FakeCall.Get ? 0 : 16, payload.Length);
            return new ValueTask<OperationResult>(OperationResult.Success);
        });
        BenchCommand command = BenchLine.Read($"-c a --key-space 1000 --value-size 16 --seed 1 --read-pct {percent}");
        Requester requester = command.Workload.Begin(command.Options).Open(target);
        SplitMix random = new(7, 0);
        for (int i = 0; i < Requests; i++)
        {
            await requester.SendAsync(Draw.From(ref random));
        }

        Assert.Equal(1000, keys.Count);
        Assert.InRange(reads, (percent - 1) * Requests / 100, (percent + 1) * Requests / 100);
    }

    private static async Task<string[]> FirstAsync(string arguments, int count)
    {
        ConcurrentQueue<string> requests = new();
        FakeTarget target = new((call, key, value) =>
        {
            requests.Enqueue($"{call} {key} {Convert.ToHexString(value.Span)}".TrimEnd());
            return new ValueTask<OperationResult>(OperationResult.Success);
        });
        string[] first = [];
        string line = $"-c a --seed 42 --value-size 4 --concurrency 1 --warmup 0 {arguments}";
        await BenchOutcome.RunLongEnoughAsync(target, line, _ =>
        {
            first = [.. requests.Take(count)];
            requests.Clear();
            return first.Length == count;
        });
        return first;
    }
}
