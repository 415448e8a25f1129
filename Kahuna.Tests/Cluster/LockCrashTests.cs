using System.Diagnostics;
using Kahuna.Benchmark.Verification;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Locks of real processes whose leaders are killed again and again, and then all of them: never two holders, and
/// tokens only grow.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class LockCrashTests(ITestOutputHelper output)
{
    private const int Callers = 12;
    private const int Names = 3;

    private static readonly TimeSpan s_backWithin = LastNet.Span;
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(3);
    private static readonly TimeSpan s_wait = TimeSpan.FromSeconds(20);

    /// <summary>Somewhat less than the minute for which leases of before may last.</summary>
    private static readonly TimeSpan s_leasesOfBefore = TimeSpan.FromSeconds(50);

    [Fact]
    public async Task Killed_leaders_never_make_two_holders_and_tokens_grow_also_over_the_end_of_all_nodes()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(10));
            LockLedger ledger = new();
            Progress progress = new();
            using CancellationTokenSource stop = new();
            Task[] callers =
            [
                .. Enumerable.Range(0, Callers)
                    .Select(i => Task.Run(() => CallAsync(client, i, ledger.Open(), progress, stop.Token))),
            ];
            Repeats kills = new(4, 2, share: 30, "KAHUNA_KILLS");
            while (kills.Next())
            {
                await progress.MakeAsync();
                await Task.Delay(Random.Shared.Next(50, 400));
                NodeProcess leader = await cluster.LeaderAsync(ephemeral: kills.Done % 2 == 1);
                leader.Kill();
                await progress.MakeAsync();
                leader.Start();
                await cluster.WaitReadyAsync();
            }

            await progress.MakeAsync();
            await stop.CancelAsync();
            await Task.WhenAll(callers).WaitAsync(LastNet.Span);
            LockFindings findings = ledger.Check();
            Assert.True(findings.IsGood, findings.ToString());
            output.WriteLine($"Checked: {kills} times kill -9 of a leader: {findings}");
            await KillAllAsync(cluster, client, progress);
        });
    }

    /// <summary>
    /// Everything ephemeral is gone then. Its locks are granted again when the leases of before are over, a minute at
    /// most, with greater tokens.
    /// </summary>
    private async Task KillAllAsync(ProcessCluster cluster, KahunaClient client, Progress progress)
    {
        foreach (NodeProcess node in cluster.Nodes)
        {
            node.SendKill();
        }

        foreach (NodeProcess node in cluster.Nodes)
        {
            node.WaitForExit(s_backWithin);
        }

        Stopwatch clock = Stopwatch.StartNew();
        await cluster.StartAsync();
        await using LockHandle persistent = await client.Locks.AcquireAsync(Name(0), s_lease, LastNet.Call);
        Assert.True(persistent.Token.Value > progress.Tokens[0], $"{persistent.Token} after {progress.Tokens[0]}");
        LockOptions ephemeral = new() { Durability = Durability.Ephemeral };
        LockHandle? early = await TryAcquireAsync(client, Name(0), ephemeral);
        Assert.True(early is null || clock.Elapsed > s_leasesOfBefore, $"granted after {clock.Elapsed}");
        await (early?.DisposeAsync() ?? ValueTask.CompletedTask);
        await using LockHandle granted = await client.Locks.AcquireAsync(Name(0), s_lease, LastNet.Call, ephemeral);
        Assert.True(
            granted.Token.Value > progress.Tokens[1] && granted.Token.Value > 1L << 44,
            $"{granted.Token} after {progress.Tokens[1]}");
        Assert.True(clock.Elapsed > s_leasesOfBefore, $"granted after {clock.Elapsed}");
        output.WriteLine(
            $"Checked: kill -9 of all nodes: tokens {progress.Tokens[0]} to {persistent.Token} and "
                + $"{progress.Tokens[1]} to {granted.Token}; the ephemeral lock was granted again after "
                + $"{clock.Elapsed.TotalSeconds:0} s");
    }

    private static async Task CallAsync(
        KahunaClient client, int caller, LockLedger.Page page, Progress progress, CancellationToken stop)
    {
        int name = caller / 2 % Names;
        bool isEphemeral = caller % 2 == 1;
        LockOptions options = new() { Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent };
        while (!stop.IsCancellationRequested)
        {
            long start = Stopwatch.GetTimestamp();
            try
            {
                LockHandle handle = await client.Locks.AcquireAsync(
                    Name(name), s_lease, s_wait, options, CancellationToken.None);
                long grantedAt = Stopwatch.GetTimestamp();
                await Task.Delay(Random.Shared.Next(8), CancellationToken.None);
                long until = handle.Remaining > TimeSpan.Zero ? Stopwatch.GetTimestamp() : grantedAt;
                page.Begin();
                page.Got(new LockLedger.Entry($"{isEphemeral} {name}", handle.Token.Value, start, grantedAt, until));
                progress.Note(name, isEphemeral, handle.Token.Value);
                await handle.DisposeAsync();
            }
            catch (KahunaException)
            {
                await Task.Delay(10, CancellationToken.None);
            }
        }
    }

    /// <summary>
    /// Asks again, a few times, while the outcome is unknown: it is when the epoch or its first leader ends during a
    /// call.
    /// </summary>
    private static async Task<LockHandle?> TryAcquireAsync(KahunaClient client, string name, LockOptions options)
    {
        for (int left = 10; ; left--)
        {
            try
            {
                return await client.Locks.TryAcquireAsync(name, s_lease, options);
            }
            catch (KahunaException unknown) when (unknown.Outcome == OperationOutcome.Unknown && left > 0)
            {
                await Task.Delay(100);
            }
        }
    }

    private static string Name(int number) => $"crash/{number}/lock";

    /// <summary>How far the callers are.</summary>
    private sealed class Progress
    {
        private readonly long[] _grants = new long[2];

        /// <summary>The greatest token of the first lock, persistent and ephemeral.</summary>
        public long[] Tokens { get; } = new long[2];

        public void Note(int name, bool isEphemeral, long token)
        {
            int level = isEphemeral ? 1 : 0;
            Interlocked.Increment(ref _grants[level]);
            if (name == 0)
            {
                Interlocked.Exchange(ref Tokens[level], token);
            }
        }

        /// <summary>Waits for further grants at both levels.</summary>
        public async Task MakeAsync()
        {
            long[] before = [Interlocked.Read(ref _grants[0]) + 20, Interlocked.Read(ref _grants[1]) + 20];
            Stopwatch clock = Stopwatch.StartNew();
            while (Interlocked.Read(ref _grants[0]) < before[0] || Interlocked.Read(ref _grants[1]) < before[1])
            {
                Assert.True(
                    clock.Elapsed < s_backWithin,
                    $"{_grants[0]} and {_grants[1]} grants, and {before[0]} and {before[1]} were "
                        + $"to come within {s_backWithin}");
                await Task.Delay(20);
            }
        }
    }
}
