using System.Diagnostics;
using System.Globalization;
using Kahuna.Benchmark.Recording;
using Kahuna.Client;
using Kahuna.Tests.Cluster.Soak;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// Three real processes under legitimate load, first alone, then beside every attacker. Legitimate calls must all
/// succeed, take at most ten times as long at the 99th percentile, and the nodes' memory must come back. The attackers
/// are a process of their own with the lowest priority, since they have machines of their own in life. Used once.
/// </summary>
internal sealed class AttackRun(TimeSpan duration, string kinds, ITestOutputHelper output)
{
    private const double SlowerMost = 10;
    private const double MemoryMost = 1.2;

    /// <summary>Load without attackers, by which the rest is judged.</summary>
    private static readonly TimeSpan s_alone = TimeSpan.FromSeconds(30);

    /// <summary>How long the nodes have to give memory back.</summary>
    private static readonly TimeSpan s_settle = TimeSpan.FromMinutes(2);

    private readonly List<string> _problems = [];

    /// <summary>
    /// Runs, and returns what was measured. Throws <see cref="SoakException"/> with everything that is wrong.
    /// </summary>
    public async Task<string> RunAsync()
    {
        await using ProcessCluster cluster = new(output, 3, "--partitions", "3");
        string done = "";
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            done = await AttackAsync(cluster);
        });
        return done;
    }

    private async Task<string> AttackAsync(ProcessCluster cluster)
    {
        await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(10));
        LegitimateLoad load = new(client);
        await load.FillAsync();
        await MeasureAsync(load, s_settle / 2);
        LatencyHistogram alone = await MeasureAsync(load, s_alone);
        long before = await OwnBytesAsync(cluster);
        Tell("alone", alone, before);
        await TellNodesAsync(cluster);

        LatencyHistogram attacked;
        string attackers;
        using (Process process = StartAttackers(cluster))
        {
            attacked = await MeasureAsync(load, duration);
            process.StandardInput.Close();
            attackers = await process.StandardOutput.ReadToEndAsync();
            await process.WaitForExitAsync();
            Require(
                process.ExitCode == 0,
                $"the attackers ended with {process.ExitCode}: {await process.StandardError.ReadToEndAsync()}");
        }

        output.WriteLine(attackers.TrimEnd());
        Tell("attacked", attacked, await OwnBytesAsync(cluster));
        await TellNodesAsync(cluster);
        long after = await SettleAsync(cluster, load, before);
        await TellNodesAsync(cluster);
        double slower = (double)attacked.ValueAtPercentile(99) / Math.Max(1, alone.ValueAtPercentile(99));
        Require(load.Errors.Count == 0, $"legitimate calls failed: {string.Join(" | ", load.Errors)}");
        Require(
            slower <= SlowerMost,
            string.Create(
                CultureInfo.InvariantCulture,
                $"p99 is {slower:0.0} times that without attackers; at most {SlowerMost:0} are allowed"));
        Require(
            after <= before * MemoryMost,
            string.Create(
                CultureInfo.InvariantCulture,
                $"the nodes keep {after >> 20} MiB, {before >> 20} before; at most "
                    + $"{MemoryMost:0.0} times as much are allowed"));
        Require(cluster.Nodes.All(static node => node.IsRunning), "a node has ended");
        if (_problems.Count > 0)
        {
            throw new SoakException(string.Join('\n', _problems));
        }

        return string.Create(
            CultureInfo.InvariantCulture,
            $"{attacked.TotalCount:N0} legitimate calls, no error; p99 {slower:0.0} times that without attackers; "
                + $"memory {before >> 20} MiB before, {after >> 20} MiB after");
    }

    private static async Task<LatencyHistogram> MeasureAsync(LegitimateLoad load, TimeSpan time)
    {
        using CancellationTokenSource end = new(time);
        return await load.MeasureAsync(end.Token);
    }

    private async Task<long> SettleAsync(ProcessCluster cluster, LegitimateLoad load, long before)
    {
        long after = long.MaxValue;
        long began = Stopwatch.GetTimestamp();
        while (Stopwatch.GetElapsedTime(began) < s_settle && after > before * MemoryMost)
        {
            await MeasureAsync(load, TimeSpan.FromSeconds(5));
            after = await OwnBytesAsync(cluster);
        }

        long remembered = await RememberedBytesAsync(cluster);
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"afterwards     {after >> 20} MiB, and {remembered >> 20} MiB of outcomes that the nodes remember"));
        return after;
    }

    private Process StartAttackers(ProcessCluster cluster)
    {
        ProcessStartInfo start = new(
            "nice", ["-n", "19", "dotnet", typeof(AttackRun).Assembly.Location, "attackers", cluster.Endpoints, kinds])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        return Process.Start(start)!;
    }

    /// <summary>
    /// What the nodes take up beside the outcomes that they have promised to remember for an hour: those have limits of
    /// their own, and are not to be given back.
    /// </summary>
    private static async Task<long> OwnBytesAsync(ProcessCluster cluster) =>
        ResidentBytes(cluster) - await RememberedBytesAsync(cluster);

    private static async Task<long> RememberedBytesAsync(ProcessCluster cluster)
    {
        NodeStatus?[] statuses = await Task.WhenAll(
            cluster.Nodes.Where(static node => node.IsRunning).Select(cluster.StatusAsync));
        return statuses
            .OfType<NodeStatus>()
            .SelectMany(static status => status.Partitions.Concat(status.EphemeralPartitions))
            .Sum(static partition => partition.Sessions.Bytes);
    }

    private static long ResidentBytes(ProcessCluster cluster) =>
        cluster.Nodes.Where(static node => node.IsRunning).Sum(static node =>
    {
        using Process process = Process.GetProcessById(node.ProcessId);
        return process.WorkingSet64;
    });

    /// <summary>
    /// What each node's memory is for, and its latest pauses: which of the two is wrong is seen there.
    /// </summary>
    private async Task TellNodesAsync(ProcessCluster cluster)
    {
        IEnumerable<NodeProcess> running = cluster.Nodes.Where(static node => node.IsRunning);
        foreach (NodeStatus status in (await Task.WhenAll(running.Select(cluster.StatusAsync)))
            .OfType<NodeStatus>())
        {
            string pauses = string.Join(' ', status.Gc.LatestPausesMs.Select(static pause =>
                pause.ToString("0.0", CultureInfo.InvariantCulture)));
            string generations = string.Join(", ", status.Gc.Generations.Select(static row =>
                $"{row.Name} {row.Bytes >> 20} {row.FreeBytes >> 20}"));
            output.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"  node {status.NodeId}: {status.Gc.WorkingSetBytes >> 20} MiB, of it heap "
                    + $"{status.Gc.HeapBytes >> 20} ({status.Gc.CommittedBytes >> 20} committed), states "
                    + $"{(status.PersistentBytes + status.EphemeralBytes) >> 20}; longest pause so far "
                    + $"{status.Gc.LongestPauseMs:0.0} ms, latest {pauses}"));
            output.WriteLine($"          MiB of each generation, and free in it: {generations}");
        }
    }

    private void Tell(string when, LatencyHistogram latencies, long bytes) => output.WriteLine(string.Create(
        CultureInfo.InvariantCulture,
        $"{when,-14} {latencies.TotalCount:N0} calls, p50 {latencies.ValueAtPercentile(50) / 1e3:0.00} ms, p99 "
            + $"{latencies.ValueAtPercentile(99) / 1e3:0.00} ms, longest "
            + $"{latencies.Max / 1e3:0.0} ms; {bytes >> 20} MiB"));

    private void Require(bool holds, string problem)
    {
        if (!holds)
        {
            _problems.Add(problem);
        }
    }
}
