using System.Globalization;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Server.Raft;
using Kahuna.Tests.Cluster.Attack;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>
/// A leader that is cut off takes in much that never counts. The others write less, and cut their logs, so that it
/// needs their state, whose last entry is another one in its own log; and it ends when that state is in place and its
/// log is still what it was. Owned by one run.
/// </summary>
internal sealed class ReplacedTail(SimCluster cluster, Nemesis nemesis)
{
    private const int Writes = 400;
    private const long LookNs = 20_000_000;
    private const long GiveUpNs = 20_000_000_000;
    private const long ArmedNs = 10_000_000_000;

    private readonly SimContext _context = new(cluster.Scheduler.After);

    /// <summary>Begins it; returns what ends it, or null when it was not possible now.</summary>
    public Action? Apply(SimRandom random)
    {
        int group = random.Next(cluster.Config.Groups);
        SimNode? leader = cluster.Nodes.FirstOrDefault(
            node => node is { IsUp: true, IsPaused: false } && node.Loops!.Group(group).IsLeader);
        if (leader is null || cluster.Nodes.Count < 3)
        {
            return null;
        }

        nemesis.Target = $"of node {leader.Id} in partition {group}";
        Tail tail = new(
            leader,
            leader.Life,
            group,
            leader.Loops!.Group(group).Core.CommitIndex.Value,
            cluster.Scheduler.NowNs,
            random);
        Cut(tail, cut: true);
        _context.Post(_ => _ = WriteAsync(tail), null);
        cluster.Scheduler.After(LookNs, () => Look(tail));
        return static () => { };
    }

    private void Look(Tail tail)
    {
        RaftCore? own = tail.Core;
        RaftCore? next = cluster.Nodes.FirstOrDefault(node =>
            node != tail.Node
                && node is { IsUp: true, IsPaused: false }
                && node.Loops!.Group(tail.Group).IsLeader)?.Loops!
            .Group(tail.Group).Core;
        bool isReplaced = own is not null && next is not null && next.LogStart.Value > tail.Committed;
        bool isOver = own is null
            || cluster.Peers.IsHealed
            || cluster.Scheduler.NowNs > tail.BeganNs + GiveUpNs
            || (next is not null && next.CommitIndex > own.LastIndex);
        if (!isReplaced && !isOver)
        {
            cluster.Scheduler.After(LookNs, () => Look(tail));
            return;
        }

        Cut(tail, cut: false);
        if (isReplaced && !isOver)
        {
            tail.Node.Replaced = new ReplacedEnd(
                tail.Group,
                cluster.Scheduler.NowNs + ArmedNs,
                tail.Random.Chance(0.5),
                () => nemesis.StartLater(tail.Node, tail.Random.Between(0L, 500_000_000L)));
        }
    }

    private void Cut(Tail tail, bool cut)
    {
        foreach (SimNode other in cluster.Nodes.Where(other => other != tail.Node))
        {
            cluster.Peers.Cut(tail.Node.Id, other.Id, cut);
            cluster.Peers.Cut(other.Id, tail.Node.Id, cut);
        }
    }

    /// <summary>
    /// Writes one after the other, as fast as the leader takes them in as entries of their own, as long as it takes
    /// itself for the leader.
    /// </summary>
    private async Task WriteAsync(Tail tail)
    {
        try
        {
            byte[] key = Key(tail.Group);
            IFrameChannel channel = cluster.Clients.Channel(cluster.Config.Clients + 1 + cluster.Config.Hostile.Count);
            await using RawStream stream = new(channel, await channel.OpenAsync(new Uri($"https://n{tail.Node.Id}:1"), CancellationToken.None));
            await stream.GreetAsync();
            for (int i = 0; i < Writes && tail.Core is { Role: RaftRole.Leader }; i++)
            {
                stream.Add(new Command
                {
                    Kind = CommandKind.Set,
                    Durability = Durability.Persistent,
                    Key = key,
                    Value = "never"u8,
                });
                await stream.SendAsync();
                await PauseAsync();
            }
        }
        catch (Exception error) when (error is IOException or OperationCanceledException)
        {
            // The node has ended.
        }
        catch (Exception error)
        {
            cluster.Rules.Break("the run goes through", $"what is never counted: {error}");
        }
    }

    private byte[] Key(int group)
    {
        for (int i = 0; ; i++)
        {
            byte[] key = Encoding.UTF8.GetBytes(string.Create(CultureInfo.InvariantCulture, $"tail {i}/k"));
            if (InitialPartition.Of(key, cluster.Config.Groups) == group)
            {
                return key;
            }
        }
    }

    private Task PauseAsync()
    {
        TaskCompletionSource over = new(TaskCreationOptions.RunContinuationsAsynchronously);
        cluster.Scheduler.After(1_000_000 + cluster.Config.TurnNs, over.SetResult);
        return over.Task;
    }

    /// <summary>A leader that was cut off, and what its log had that counts.</summary>
    private sealed record Tail(SimNode Node, int Life, int Group, ulong Committed, long BeganNs, SimRandom Random)
    {
        /// <summary>Null when the node has ended since.</summary>
        public RaftCore? Core => Node.IsUp && Node.Life == Life ? Node.Loops!.Group(Group).Core : null;
    }
}
