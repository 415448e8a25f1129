using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>
/// Brings the faults of a run about, starts nodes again, and heals everything at the end. Owned by one run.
/// </summary>
internal sealed class Nemesis
{
    /// <summary>The fastest that a clock runs, and one over the slowest.</summary>
    public const double RateMax = 1.6;

    /// <summary>The same with leases, which need clocks that differ by less than a third.</summary>
    private const double LeaseRateMax = 1.15;

    private const long SecondNs = 1_000_000_000;

    /// <summary>How long callers hurry after a fault that may give a group two leaders: it is soon over.</summary>
    private const long HurryNs = 4 * SecondNs;

    /// <summary>So long before some stops callers hurry to the node, so that it stops with much under way.</summary>
    private const long BusyNs = SecondNs / 4;

    private readonly SimCluster _cluster;
    private readonly IReadOnlyList<Fault> _faults;
    private readonly SimRandom _random;
    private readonly NetworkFaults _network;
    private readonly DiskFaults _disks;
    private readonly ReplacedTail _tails;
    private readonly HashSet<int> _restarting = [];
    private bool _healed;

    public Nemesis(SimCluster cluster, IReadOnlyList<Fault> faults)
    {
        _cluster = cluster;
        _faults = faults;
        _random = new SimRandom(cluster.Config.Seed).Fork(5);
        _network = new NetworkFaults(cluster, this);
        _disks = new DiskFaults(this);
        _tails = new ReplacedTail(cluster, this);
    }

    /// <summary>How often each class of faults really happened.</summary>
    public int[] Fired { get; } = new int[Enum.GetValues<FaultClass>().Length];

    public int Crashes { get; private set; }

    /// <summary>
    /// What the fault that is being brought about is done to, in words for the story; empty when the events after it
    /// say so themselves.
    /// </summary>
    public string Target { get; set; } = "";

    private SimScheduler Scheduler => _cluster.Scheduler;

    public void Begin()
    {
        foreach (SimNode node in _cluster.Nodes)
        {
            Start(node);
        }

        foreach (Fault fault in _faults)
        {
            Scheduler.At(fault.AtNs, () => Fire(fault));
        }
    }

    /// <summary>Every fault ends, and every node runs.</summary>
    public void Heal()
    {
        _healed = true;
        _cluster.Peers.Heal();
        _cluster.Clients.Heal();
        foreach (SimNode node in _cluster.Nodes)
        {
            _disks.Heal(node);
            node.Clock.SetRate(1);
            node.Resume();
            if (!node.IsUp)
            {
                StartLater(node, SecondNs);
            }
        }
    }

    public void Ended(SimNode node)
    {
        Crashes++;
        _disks.Ended(node);
        if (_healed)
        {
            StartLater(node, SecondNs);
        }
    }

    /// <summary>
    /// The log or the stored state of a node is dead, and its process ends: somebody starts it again.
    /// </summary>
    public void StorageDied(SimNode node, Exception error)
    {
        if (!_disks.Explains(node) && !_cluster.Upgrade.Explains(node, error))
        {
            _cluster.Rules.Break("storage fails only when the disk does", $"node {node.Id}: {error}");
        }

        StartLater(node, _random.Between(SecondNs, 5 * SecondNs));
    }

    /// <summary>Starts a node that does not run, again and again until it does.</summary>
    public void StartLater(SimNode node, long afterNs)
    {
        if (!_restarting.Add(node.Id))
        {
            return;
        }

        Scheduler.After(afterNs, () =>
        {
            _restarting.Remove(node.Id);
            if (!node.IsUp)
            {
                Start(node);
            }
        });
    }

    /// <summary>
    /// Whether another node may lose its data now: those that are without must be a minority, with it.
    /// </summary>
    public bool MayLose(SimNode node) =>
        _cluster.Nodes.Count(
            other => other != node && (other.IsRejoining || _disks.IsDamaged(other))) < _cluster.Config.Spare;

    private void Start(SimNode node)
    {
        if (node.Start(out string? refusal))
        {
            return;
        }

        if (_disks.IsDamaged(node))
        {
            node.Wipe();
            _disks.Forget(node);
        }
        else if (!_disks.Explains(node)
            && !_cluster.Upgrade.Explains(node, node.StartError)
            && refusal != SimCrashException.Text)
        {
            _cluster.Rules.Break(
                "a restart finds what was on stable storage", $"node {node.Id} does not start: {refusal}");
        }

        StartLater(node, SecondNs);
    }

    private void Fire(Fault fault)
    {
        SimRandom random = new(fault.Draw);
        _cluster.HurryTo = null;
        Target = "";
        Action? end = Apply(fault.Class, random);
        if (end is null)
        {
            return;
        }

        if (fault.Class == FaultClass.LeaderCut
            || (fault.Class is FaultClass.Partition or FaultClass.OneWayCut or FaultClass.Pause && random.Chance(0.5)))
        {
            _cluster.HurryUntilNs = Scheduler.NowNs + HurryNs;
        }

        _cluster.Availability.Disturbed(Scheduler.NowNs);
        Fired[(int)fault.Class]++;
        Scheduler.Note(
            SimEvent.Fault,
            0,
            fault.Number,
            (long)fault.Class,
            Target.Length == 0 ? fault.Class.ToString() : $"{fault.Class} {Target}");
        Scheduler.After(fault.LastsNs, () =>
        {
            if (!_healed)
            {
                Scheduler.Note(SimEvent.FaultEnd, 0, fault.Number);
                end();
            }
        });
    }

    /// <summary>Begins a fault; returns what ends it, or null when it was not possible now.</summary>
    private Action? Apply(FaultClass kind, SimRandom random) => kind switch
    {
        FaultClass.Power or FaultClass.Kill => CrashOne(Choose(random), kind == FaultClass.Power),
        FaultClass.Stop => Stop(Choose(random), random),
        FaultClass.Everybody => Crash([.. _cluster.Nodes], random),
        FaultClass.MinimalQuorum =>
            _cluster.Config.Spare == 0 ? null : Crash(Some(_cluster.Config.Spare, random), random),
        FaultClass.ElectionCrash => CrashInElection(random),
        FaultClass.ReplacedTail => _tails.Apply(random),
        FaultClass.Pause => Pause(Choose(random)),
        FaultClass.ClockDrift => Drift(random.Pick(_cluster.Nodes), random.NextDouble()),
        FaultClass.ClockJump => Jump(Choose(random), random.Between(-20 * SecondNs, 20 * SecondNs)),
        FaultClass.SlowSync
            or FaultClass.DiskHang
            or FaultClass.SyncError
            or FaultClass.FullDisk
            or FaultClass.FlippedBit
            or FaultClass.Wipe
            or FaultClass.WipeTwice
            or FaultClass.LostLog
            or FaultClass.CrashInDisk =>
            _disks.Apply(kind, Choose(random), random),
        _ => _network.Apply(kind, random),
    };

    /// <summary>Some node, more often one that leads.</summary>
    private SimNode Choose(SimRandom random)
    {
        int group = random.Next(_cluster.Config.Layout.Count);
        SimNode other = random.Pick(_cluster.Nodes);
        return random.Chance(0.5) ? LeaderOf(group) ?? other : other;
    }

    private SimNode? LeaderOf(int group) =>
        _cluster.Nodes.FirstOrDefault(
            node => node is { IsUp: true, IsPaused: false } && node.Loops!.Group(group).IsLeader);

    private Action? CrashOne(SimNode node, bool power)
    {
        if (!node.IsUp)
        {
            return null;
        }

        node.Crash(power);
        return () => StartLater(node, 0);
    }

    private Action? Stop(SimNode node, SimRandom random)
    {
        if (!node.IsUp)
        {
            return null;
        }

        long patienceNs = random.Chance(0.5) ? 0 : random.Between(0, GracefulStop.PatienceNsMax);
        long goneNs = random.Between(0, 3 * SecondNs);
        bool isBusy = random.Chance(0.5);
        if (isBusy)
        {
            _cluster.HurryTo = node.Id;
            _cluster.HurryUntilNs = Scheduler.NowNs + (2 * BusyNs);
        }

        Scheduler.After(isBusy ? BusyNs : 0, () =>
        {
            if (!_healed)
            {
                GracefulStop.Begin(
                    node, patienceNs, _cluster.Config.TickMs * 1_000_000L, () => StartLater(node, goneNs));
            }
        });
        return static () => { };
    }

    private SimNode[] Some(int count, SimRandom random)
    {
        SimNode[] order = [.. _cluster.Nodes];
        random.Shuffle(order);
        return order[..count];
    }

    private Action Crash(SimNode[] nodes, SimRandom random)
    {
        bool power = random.Chance(0.5);
        SimNode[] running = [.. nodes.Where(static node => node.IsUp)];
        foreach (SimNode node in running)
        {
            node.Crash(power);
        }

        return () =>
        {
            foreach (SimNode node in running)
            {
                StartLater(node, random.Between(0L, 2 * SecondNs));
            }
        };
    }

    private Action? CrashInElection(SimRandom random)
    {
        int group = random.Next(_cluster.Config.Groups);
        SimNode witness = random.Pick(_cluster.Nodes);
        if (LeaderOf(group) is not { } leader || witness == leader)
        {
            return null;
        }

        ulong term = leader.Loops!.Group(group).Core.Term.Value;
        long after = random.Chance(0.5) ? 0 : random.Between(0L, SecondNs / 10);
        bool power = random.Chance(0.5);
        witness.Writes = (written, writtenTerm) =>
        {
            if (written == new GroupId((uint)group + 1) && writtenTerm > term)
            {
                witness.Writes = null;
                witness.After(after, () =>
                {
                    witness.Crash(power);
                    StartLater(witness, _random.Between(0L, SecondNs));
                });
            }
        };
        return CrashOne(leader, power);
    }

    private static Action? Pause(SimNode node)
    {
        if (!node.IsUp || node.IsPaused)
        {
            return null;
        }

        node.Pause();
        return node.Resume;
    }

    private Action Drift(SimNode node, double chance)
    {
        double most = _cluster.Config.ReadLeases ? LeaseRateMax : RateMax;
        double rate = (1 / most) + (chance * (most - (1 / most)));
        Target = string.Create(CultureInfo.InvariantCulture, $"of node {node.Id}, {rate:0.00} times as fast");
        node.Clock.SetRate(rate);
        return () => node.Clock.SetRate(1);
    }

    private Action Jump(SimNode node, long ns)
    {
        Target = string.Create(CultureInfo.InvariantCulture, $"of node {node.Id} by {ns / 1e9:0.0} s");
        node.Clock.SetWall(ns);
        return static () => { };
    }
}
