using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Kills, stops, cuts off and starts the processes of a cluster, as the seed says, and leaves all of them running.
/// Owned by one run.
/// </summary>
internal sealed class SoakNemesis(ProcessCluster cluster, SoakOptions options, SoakTally tally)
{
    private static readonly TimeSpan s_exitsWithin = LastNet.Span;

    private readonly SimRandom _random = new SimRandom(options.Seed).Fork(1);

    /// <summary>
    /// Faults until the duration is over or the token says so; then everything is healed. A run that is long enough for
    /// all kinds goes on until each has happened once, however slow the machine is.
    /// </summary>
    public async Task RunAsync(CancellationToken end)
    {
        using CancellationTokenSource over = CancellationTokenSource.CreateLinkedTokenSource(end);
        over.CancelAfter(options.Duration);
        bool mayEnd = options.Duration < SoakTally.EnoughForAllFaults;
        while (!over.IsCancellationRequested)
        {
            // Each kind once in a round, so that all of them happen also in a short run.
            SoakFault[] round = Enum.GetValues<SoakFault>();
            _random.Shuffle(round);
            foreach (SoakFault fault in round)
            {
                await Task.Delay(Quiet(), over.Token).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
                if (mayEnd ? over.IsCancellationRequested : end.IsCancellationRequested)
                {
                    break;
                }

                RequireAllRun();
                await BringAboutAsync(fault);
            }

            mayEnd = true;
        }

        RequireAllRun();
        await cluster.WaitReadyAsync();
    }

    private async Task BringAboutAsync(SoakFault fault)
    {
        if (fault == SoakFault.Restart)
        {
            // Only a node that has started can be asked to end well.
            await cluster.WaitReadyAsync();
        }

        NodeProcess victim = _random.Pick(cluster.Nodes);
        NodeProcess? leader = await LeaderAsync();
        if (_random.Chance(0.5) && leader is not null)
        {
            victim = leader;
        }

        tally.Count(fault, ofLeader: fault != SoakFault.KillAll && victim == leader);
        switch (fault)
        {
            case SoakFault.Kill:
                victim.Kill();
                await Task.Delay(Between(50, 4_000));
                victim.Start();
                await SometimesWaitReadyAsync();
                break;
            case SoakFault.Pause:
                await PauseAsync(victim);
                break;
            case SoakFault.Restart:
                await RestartAsync(victim);
                break;
            case SoakFault.KillAll:
                await KillAllAsync();
                break;
            case SoakFault.Cut:
                await CutAsync(victim);
                break;
        }
    }

    /// <summary>
    /// Half of them end before another node is elected, after the others the node wakes up in another term.
    /// </summary>
    private async Task PauseAsync(NodeProcess victim)
    {
        victim.Pause();
        try
        {
            await Task.Delay(_random.Chance(0.5) ? Between(100, 1_500) : Between(1_500, 6_000));
        }
        finally
        {
            victim.Resume();
        }
    }

    /// <summary>
    /// Half of the cuts are between the victim and both others; a third of all are of what the victim hears only.
    /// </summary>
    private async Task CutAsync(NodeProcess victim)
    {
        NodeProcess[] others = [.. cluster.Nodes.Where(node => node != victim)];
        NodeProcess[] lost = _random.Chance(0.5) ? others : [_random.Pick(others)];
        victim.Ignore(lost.Select(static node => node.Id));
        foreach (NodeProcess other in _random.Chance(0.67) ? lost : [])
        {
            other.Ignore([victim.Id]);
        }

        await Task.Delay(Between(200, 8_000));
        foreach (NodeProcess node in cluster.Nodes)
        {
            node.Ignore([]);
        }
    }

    private async Task RestartAsync(NodeProcess victim)
    {
        int exitCode = await Task.Run(victim.Stop);
        if (exitCode != 0)
        {
            throw new SoakException($"node {victim.Id} ended with exit code {exitCode} when it was asked to stop");
        }

        await Task.Delay(Between(50, 2_000));
        victim.Start();
        await SometimesWaitReadyAsync();
    }

    private async Task KillAllAsync()
    {
        NodeProcess[] nodes = [.. cluster.Nodes];
        _random.Shuffle(nodes);
        foreach (NodeProcess node in nodes)
        {
            node.SendKill();
        }

        foreach (NodeProcess node in nodes)
        {
            node.WaitForExit(s_exitsWithin);
        }

        await Task.Delay(Between(50, 1_000));
        await cluster.StartAsync();
    }

    /// <summary>Otherwise the next fault may meet a node that is still catching up.</summary>
    private Task SometimesWaitReadyAsync() => _random.Chance(0.7) ? cluster.WaitReadyAsync() : Task.CompletedTask;

    /// <summary>
    /// The node that leads most partitions as far as the nodes know at this moment; null when none says so.
    /// </summary>
    private async Task<NodeProcess?> LeaderAsync()
    {
        NodeStatus?[] statuses = await Task.WhenAll(cluster.Nodes.Select(cluster.StatusAsync));
        int[] led =
        [
            .. statuses.Select(
                static status => status?.Partitions.Count(static partition => partition.Role == "leader") ?? 0),
        ];
        int most = Array.IndexOf(led, led.Max());
        return led[most] == 0 ? null : cluster.Nodes[most];
    }

    private void RequireAllRun()
    {
        if (cluster.Nodes.FirstOrDefault(static node => !node.IsRunning) is { } ended)
        {
            throw new SoakException($"node {ended.Id} ended by itself with exit code {ended.ExitCode}");
        }
    }

    private TimeSpan Quiet() => TimeSpan.FromMilliseconds(200 + Math.Min(4_000, _random.Exponential(1_500)));

    /// <summary>Short ones as often as long ones: evenly distributed on a logarithmic scale.</summary>
    private TimeSpan Between(double leastMs, double mostMs) =>
        TimeSpan.FromMilliseconds(leastMs * Math.Pow(mostMs / leastMs, _random.NextDouble()));
}
