using System.Globalization;
using System.Text;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Wire.Routing;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Chooses the keys of a transaction: <c>bench:{n}/{i}</c>, which share the bucket <c>bench:{n}</c> and so a partition.
/// Over several partitions they are dealt in turn to that many buckets, each in a partition of its own. Immutable after
/// the preparation; any thread.
/// </summary>
internal sealed class TransactionKeys(KeySpace keys, BenchOptions options)
{
    public static readonly WorkloadOption Reads = new("--reads", "n", 2, 0, 100, "Keys that a transaction reads");

    public static readonly WorkloadOption Writes = new("--writes", "n", 2, 0, 100, "Keys that a transaction writes");

    public static readonly WorkloadOption Partitions = new(
        "--partitions", "n", 1, 1, 9, "Partitions that the keys of a transaction lie in");

    /// <summary>Buckets among which the partitions have to be found; far more than there are partitions.</summary>
    private const int SearchedMax = 10_000;

    private readonly int _reads = options.OfWorkload[Reads];
    private readonly int _writes = options.OfWorkload[Writes];
    private readonly int _partitions = options.OfWorkload[Partitions];
    private SlotMap _map = SlotMap.Initial(1);

    /// <summary>The options of all workloads with transactions.</summary>
    public static IReadOnlyList<WorkloadOption> All { get; } = [Reads, Writes, Partitions];

    /// <summary>As <see cref="Workload.Conflict"/>.</summary>
    public static string? Conflict(BenchOptions options)
    {
        (int reads, int writes) = (options.OfWorkload[Reads], options.OfWorkload[Writes]);
        int partitions = options.OfWorkload[Partitions];
        return options.Target != TargetKind.Kahuna && partitions > 1
                ? $"{Partitions.Name}: {TargetNames.Of(options.Target)} has no partitions."
            : reads + writes == 0 ? $"{Reads.Name}: a transaction without reads needs {Writes.Name} above 0."
            : reads + writes < partitions
                ? string.Create(
                    CultureInfo.InvariantCulture,
                    $"{Partitions.Name}: {reads} {Reads.Name} and {writes} {Writes.Name} are fewer than {partitions}.")
            : null;
    }

    /// <summary>Learns the cluster's partitions. Throws <see cref="TargetException"/> if they are too few.</summary>
    public async Task PrepareAsync(ITarget target, CancellationToken cancellationToken)
    {
        if (_partitions == 1)
        {
            return;
        }

        int count;
        try
        {
            IPartitionedSession session = (IPartitionedSession)target.OpenSession(0);
            count = await session.CountPartitionsAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (Exception failure) when (failure is not OperationCanceledException)
        {
            throw new TargetException($"The partitions cannot be counted: {failure.Message}", failure);
        }

        // As a new cluster spreads its keys. Where slots have moved, a transaction may have fewer partitions.
        _map = SlotMap.Initial(count);
        int found = Enumerable.Range(0, Math.Min(keys.Count, SearchedMax)).Select(PartitionOf).Distinct().Count();
        if (found < _partitions)
        {
            throw new TargetException(string.Create(
                CultureInfo.InvariantCulture,
                $"{Partitions.Name}: the keys lie in {found} of the cluster's {count} partitions; {_partitions} are "
                    + $"needed."));
        }
    }

    /// <summary>
    /// The keys that <paramref name="draw"/> chooses. Which of a bucket's keys are read and which are written differs
    /// from one transaction to the next, so that reads find what others wrote.
    /// </summary>
    public TransactionInput Choose(Draw draw, ReadOnlyMemory<byte> value)
    {
        int[] buckets = BucketsFrom(SplitMix.Below(draw.Choice, keys.Count));
        string[] reads = new string[_reads];
        string[] writes = new string[_writes];
        int first = (int)(draw.Bits >> 32) & int.MaxValue;
        for (int i = 0; i < _reads + _writes; i++)
        {
            (string[] list, int at) = i < _reads ? (reads, i) : (writes, i - _reads);
            int number = (int)(((long)first + i) % (_reads + _writes));
            list[at] = string.Create(CultureInfo.InvariantCulture, $"{keys[buckets[i % buckets.Length]]}/{number}");
        }

        return new TransactionInput(reads, writes, value);
    }

    /// <summary>A bucket, and the next ones in other partitions.</summary>
    private int[] BucketsFrom(int number)
    {
        int[] buckets = new int[_partitions];
        buckets[0] = number;
        for (int found = 1; found < buckets.Length; found++)
        {
            do
            {
                number = (number + 1) % keys.Count;
            }
            while (Array.Exists(buckets[..found], other => PartitionOf(other) == PartitionOf(number)));
            buckets[found] = number;
        }

        return buckets;
    }

    private int PartitionOf(int number) => _map.PartitionOf(Encoding.UTF8.GetBytes($"{keys[number]}/0"));
}
