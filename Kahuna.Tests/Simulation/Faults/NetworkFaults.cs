using System.Globalization;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>Cuts, clogs and resets between nodes and clients. Owned by one run.</summary>
internal sealed class NetworkFaults(SimCluster cluster, Nemesis nemesis)
{
    private int Count => cluster.Nodes.Count;

    /// <summary>Begins a fault; returns what ends it, or null when it was not possible now.</summary>
    public Action? Apply(FaultClass kind, SimRandom random)
    {
        if (kind == FaultClass.Reset)
        {
            return Reset(random);
        }

        if (kind == FaultClass.Clog)
        {
            return Clog(random);
        }

        if (Count == 1)
        {
            return CutClients(random);
        }

        if (kind == FaultClass.LateAnswers)
        {
            return Count >= 5 && random.Chance(0.5) ? DelayAlly(random) : DelayAnswers(random);
        }

        List<(int From, int To)> cuts = kind switch
        {
            FaultClass.OneWayCut => [.. Enumerable.Range(0, random.Between(1, 2)).Select(_ => Pair(random))],
            FaultClass.LeaderCut => AroundLeader(random, random.Pick([0, 1, 1, 2, 2])),
            FaultClass.DeafLeader => AroundLeader(random, way: 0),
            _ => Shape(random),
        };
        cuts.RemoveAll(cut => cut.From == cut.To || cluster.Peers.IsCut(cut.From, cut.To));
        foreach ((int from, int to) in cuts)
        {
            cluster.Peers.Cut(from, to, cut: true);
        }

        nemesis.Target = Links(cuts);
        Action? clients = random.Chance(0.3) ? CutClients(random) : null;
        return () =>
        {
            foreach ((int from, int to) in cuts)
            {
                cluster.Peers.Cut(from, to, cut: false);
            }

            clients?.Invoke();
        };
    }

    /// <summary>Links as a list from node to node; a link that is cut both ways once.</summary>
    private static string Links(List<(int From, int To)> links) =>
        links.Count == 0 ? "of nothing that is not cut already" : "of " + string.Join(", ", links.Distinct()
        .Where(link => link.From < link.To || !links.Contains((link.To, link.From)))
        .Select(link => $"{link.From}{(links.Contains((link.To, link.From)) ? "-" : "->")}{link.To}"));

    private static bool Apart(int[] side, int a, int b) => side[a] != side[b];

    private (int From, int To) Pair(SimRandom random) => (random.Between(1, Count), random.Between(1, Count));

    private SimNode Leader(SimRandom random)
    {
        int group = random.Next(cluster.Config.Layout.Count);
        return cluster.Nodes.FirstOrDefault(node => node.IsUp && node.Loops!.Group(group).IsLeader)
            ?? random.Pick(cluster.Nodes);
    }

    /// <summary>A leader that hears nobody, is heard by nobody, or both.</summary>
    private List<(int From, int To)> AroundLeader(SimRandom random, int way)
    {
        SimNode leader = Leader(random);
        cluster.HurryTo = leader.Id;
        List<(int From, int To)> cuts = [];
        for (int other = 1; other <= Count; other++)
        {
            if (way != 0)
            {
                cuts.Add((leader.Id, other));
            }

            if (way != 1)
            {
                cuts.Add((other, leader.Id));
            }
        }

        return cuts;
    }

    /// <summary>Two sides, one node alone, a ring, or two sides with a bridge.</summary>
    private List<(int From, int To)> Shape(SimRandom random)
    {
        int[] order = [.. Enumerable.Range(1, Count)];
        random.Shuffle(order);
        int[] place = new int[Count + 1];
        for (int i = 0; i < Count; i++)
        {
            place[order[i]] = i;
        }

        int shape = random.Next(4);
        int half = shape == 1 ? 1 : Math.Max(1, (Count - (shape == 3 ? 1 : 0)) / 2);
        int[] side = new int[Count + 1];
        for (int node = 1; node <= Count; node++)
        {
            side[node] = place[node] < half ? 0 : 1;
        }

        int bridge = shape == 3 ? order[^1] : 0;
        List<(int From, int To)> cuts = [];
        for (int a = 1; a <= Count; a++)
        {
            for (int b = 1; b <= Count; b++)
            {
                int apart = (place[a] - place[b] + Count) % Count;
                bool cut = shape == 2
                    ? apart > 1 && apart < Count - 1
                    : a != bridge && b != bridge && Apart(side, a, b);
                if (cut)
                {
                    cuts.Add((a, b));
                }
            }
        }

        return cuts;
    }

    private Action CutClients(SimRandom random)
    {
        List<(int Client, int Node)> cuts = [];
        for (int client = 1; client <= cluster.Config.Clients; client++)
        {
            for (int node = 1; node <= Count; node++)
            {
                if (random.Chance(0.4))
                {
                    cuts.Add((client, node));
                    cluster.Clients.Cut(client, node, cut: true);
                }
            }
        }

        string clients =
            $"clients from nodes {string.Join(", ", cuts.Select(static cut => $"{cut.Client}-{cut.Node}"))}";
        nemesis.Target += nemesis.Target.Length > 0 ? $"; {clients}" : $"of {clients}";
        return () =>
        {
            foreach ((int client, int node) in cuts)
            {
                cluster.Clients.Cut(client, node, cut: false);
            }
        };
    }

    private Action Clog(SimRandom random)
    {
        List<(int From, int To)> clogs = [.. Enumerable.Range(0, random.Between(1, 3)).Select(_ => Pair(random))];
        long extra = random.Between(5_000_000L, 2_000_000_000L);
        foreach ((int from, int to) in clogs)
        {
            cluster.Peers.Clog(from, to, extra);
        }

        nemesis.Target = string.Create(CultureInfo.InvariantCulture, $"{Links(clogs)} by {extra / 1e6:0} ms");
        return () =>
        {
            foreach ((int from, int to) in clogs)
            {
                cluster.Peers.Clog(from, to, 0);
            }
        };
    }

    /// <summary>
    /// Everything comes to a leader later and later, up to three election timeouts, so slowly that it goes on to lead;
    /// then the others do not hear it any more, and elect another one while their old answers still reach it.
    /// </summary>
    private Action DelayAnswers(SimRandom random)
    {
        int leader = Leader(random).Id;
        nemesis.Target = $"of all to node {leader}";
        int[] others = [.. Enumerable.Range(1, Count).Where(node => node != leader)];
        long timeoutNs = cluster.Config.ElectionTicks * cluster.Config.TickMs * 1_000_000L;
        int steps = random.Between(3, 12);
        for (int step = 1; step <= steps; step++)
        {
            long ns = step * timeoutNs / 4;
            cluster.Scheduler.After(step * timeoutNs / 2, () => Clog(ns));
        }

        long cutNs = (steps * timeoutNs / 2) + random.Between(timeoutNs, 4 * timeoutNs);
        cluster.Scheduler.After(cutNs, () =>
        {
            Cut(cut: true);
            cluster.HurryUntilNs = cluster.Scheduler.NowNs + (4 * timeoutNs);
        });
        cluster.Scheduler.After(cutNs + (4 * timeoutNs), () =>
        {
            Cut(cut: false);
            Clog(0);
        });
        return static () => { };

        void Clog(long ns) => Array.ForEach(others, other => cluster.Peers.Clog(other, leader, ns));
        void Cut(bool cut) => Array.ForEach(others, other => cluster.Peers.Cut(leader, other, cut));
    }

    /// <summary>
    /// A leader is left with one follower, whose answers take so long that they arrive when the leader has lost its
    /// leadership, followed another node and perhaps leads again; the follower knows of nothing since.
    /// </summary>
    private Action DelayAlly(SimRandom random)
    {
        SimNode leader = Leader(random);
        SimNode ally = random.Pick([.. cluster.Nodes.Where(node => node != leader)]);
        nemesis.Target = $"of node {ally.Id} to node {leader.Id}, both cut from the others";
        int[] others = [.. Enumerable.Range(1, Count).Where(node => node != leader.Id && node != ally.Id)];
        long timeoutNs = cluster.Config.ElectionTicks * cluster.Config.TickMs * 1_000_000L;
        long aloneNs = random.Between(timeoutNs * 2, timeoutNs * 4);
        long pauseNs = aloneNs + random.Between(timeoutNs / 4, timeoutNs * 2);
        long lateNs = pauseNs + random.Between(timeoutNs / 2, timeoutNs * 4);
        cluster.Peers.Clog(ally.Id, leader.Id, lateNs);
        Cut(leader, cut: true);
        Cut(ally, cut: true);
        cluster.HurryUntilNs = cluster.Scheduler.NowNs + lateNs;
        cluster.Scheduler.After(aloneNs, () => Cut(leader, cut: false));
        cluster.Scheduler.After(pauseNs, () =>
        {
            SimNode next = Leader(random);
            if (next != leader && next != ally && next.IsUp && !next.IsPaused && !cluster.Peers.IsHealed)
            {
                next.Pause();
                cluster.Scheduler.After(timeoutNs * 3, next.Resume);
            }
        });
        cluster.Scheduler.After(lateNs + (timeoutNs * 2), () =>
        {
            Cut(ally, cut: false);
            cluster.Peers.Clog(ally.Id, leader.Id, 0);
        });
        return static () => { };

        void Cut(SimNode node, bool cut) => Array.ForEach(others, other =>
        {
            cluster.Peers.Cut(node.Id, other, cut);
            cluster.Peers.Cut(other, node.Id, cut);
        });
    }

    private Action Reset(SimRandom random)
    {
        (int from, int to) = Pair(random);
        if (from != to)
        {
            cluster.Peers.Break(from, to);
            nemesis.Target = Links([(from, to)]);
        }

        if (random.Chance(0.5))
        {
            random.Pick(cluster.Nodes).ResetSessions();
        }

        return static () => { };
    }
}
