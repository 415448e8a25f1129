using Kahuna.Server.Partitions.Groups;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation;

/// <summary>Everything of one run: nodes, links, clients, faults, rules. One thread.</summary>
internal sealed class SimCluster
{
    private const long SecondNs = 1_000_000_000;

    /// <summary>Virtual time after the healing in which everything must have come to its end.</summary>
    private const long RecoveryNs = 120 * SecondNs;

    private const long LookNs = 100_000_000;

    /// <summary>
    /// Keys take a few thousand states; one with hundreds of calls of unknown end could take a minute.
    /// </summary>
    private const int CheckedStatesMax = 200_000;

    private readonly Nemesis _nemesis;
    private readonly RollingUpgrade _upgrade;
    private readonly SimClient[] _clients;
    private readonly UserCaller[] _users = [];
    private readonly Administrator? _administrator;

    public SimCluster(SimConfig config, IReadOnlyList<Fault> faults, TextWriter? trace)
    {
        Config = config;
        Log = new EventLog(trace);
        Scheduler = new SimScheduler(Log);
        SimNode[] nodes = new SimNode[config.Nodes];
        Rules = new ClusterRules(config, nodes);
        Peers = new PeerNetwork(Scheduler, config, nodes);
        Availability = new AvailabilityRules(config, nodes, Peers, Rules.Break);
        Prompt = new PromptRules(config, nodes, Availability, Rules.Break);
        Clients = new ClientNetwork(Scheduler, config, nodes, Peers) { Break = Rules.Break, Cluster = this };
        History = new CallLog(() => Rules);
        Keys = new KeyRing(config.KeySlots);
        WideBank = new WideBank(config);
        WideFences = new WideFences(config.Groups);
        Rights = new RightsHistory(this);
        Nodes = nodes;
        for (int i = 0; i < nodes.Length; i++)
        {
            nodes[i] = new SimNode(this, i + 1);
        }

        Mover = config.SlotMoves > 0 ? new SlotMover(this) : null;
        _nemesis = new Nemesis(this, faults);
        _upgrade = new RollingUpgrade(this, _nemesis);
        _clients = [.. Enumerable.Range(1, config.Clients).Select(number => new SimClient(this, number))];
        Watchers = [.. Enumerable.Range(1, config.Watchers).Select(number => new Watcher(this, number))];
        if (config.HasUsers)
        {
            _users = [.. SimUser.All.Select(user => new UserCaller(this, user))];
            _administrator = new Administrator(this);
        }

        Followers = [.. Enumerable.Range(1, config.Followers).Select(number => new ChangeFollower(this, number))];
    }

    public SimConfig Config { get; }

    public EventLog Log { get; }

    public SimScheduler Scheduler { get; }

    public ClusterRules Rules { get; }

    public AvailabilityRules Availability { get; }

    public PromptRules Prompt { get; }

    public PeerNetwork Peers { get; }

    public ClientNetwork Clients { get; }

    public CallLog History { get; }

    /// <summary>What consistent scans have shown.</summary>
    public List<ScanMoment> Moments { get; } = [];

    /// <summary>Transactions on lists.</summary>
    public List<ListCall> Lists { get; } = [];

    /// <summary>What watches of the shipped client have returned.</summary>
    public List<SdkWatch> SdkWatches { get; } = [];

    public KeyRing Keys { get; }

    /// <summary>Accounts in several partitions.</summary>
    public WideBank WideBank { get; }

    /// <summary>Transactions under the tokens of locks in any partition.</summary>
    public WideFences WideFences { get; }

    /// <summary>Claims and auctions that transactions on ranges make.</summary>
    public RangeClaims RangeClaims { get; } = new();

    public HoldFigures Holds { get; } = new();

    /// <summary>What users were allowed, and when.</summary>
    public RightsHistory Rights { get; }

    /// <summary>Who follows the changes.</summary>
    public IReadOnlyList<ChangeFollower> Followers { get; }

    /// <summary>Who watches keys.</summary>
    public IReadOnlyList<Watcher> Watchers { get; }

    /// <summary>Moves a slot between partitions; null in most runs.</summary>
    public SlotMover? Mover { get; }

    public IReadOnlyList<SimNode> Nodes { get; }

    public Nemesis Faults => _nemesis;

    public RollingUpgrade Upgrade => _upgrade;

    /// <summary>One more rule to look at after every step: what is wrong, or null.</summary>
    public Func<SimCluster, string?>? FurtherRule { get; init; }

    /// <summary>Keys whose histories were too much for the checker.</summary>
    public int Undecided { get; private set; }

    /// <summary>Keys whose histories were checked.</summary>
    public int CheckedKeys { get; private set; }

    /// <summary>Until then callers pause a tenth of what they do otherwise, and want the same keys.</summary>
    public long HurryUntilNs { get; set; }

    /// <summary>
    /// Most calls of those who hurry go to this node, which was a leader when it was cut off: what it writes in vain is
    /// what the next leader overwrites.
    /// </summary>
    public int? HurryTo { get; set; }

    /// <summary>Callers begin nothing new.</summary>
    public bool LoadEnds { get; private set; }

    /// <summary>Runs to the end. Throws <see cref="RuleBrokenException"/> at the first broken rule.</summary>
    public void Run()
    {
        _nemesis.Begin();
        _upgrade.Begin();
        Mover?.Start();
        foreach (SimClient client in _clients)
        {
            client.Start();
        }

        for (int i = 0; i < Config.Hostile.Count; i++)
        {
            new HostileClient(this, i + 1, Config.Hostile[i]).Start();
        }

        _administrator?.Start();
        foreach (UserCaller user in _users)
        {
            user.Start();
        }

        foreach (ChangeFollower follower in Followers)
        {
            follower.Start();
        }

        foreach (Watcher watcher in Watchers)
        {
            watcher.Start();
        }

        long endNs = (long)(Config.Seconds * SecondNs);
        while (Scheduler.NowNs < endNs)
        {
            RunUntil(Math.Min(endNs, Scheduler.NowNs + LookNs));
            Availability.Look(Scheduler.NowNs, Clients.HasCuts);
            Prompt.Look();
        }

        LoadEnds = true;
        Scheduler.Note(SimEvent.Heal, 0);
        _upgrade.End();
        _nemesis.Heal();
        Complete(endNs + RecoveryNs);

        Mover?.CheckRoutes();
        foreach (ChangeFollower follower in Followers)
        {
            follower.Finish();
        }

        foreach (Watcher watcher in Watchers)
        {
            watcher.Finish();
        }

        CheckHistory();
    }

    /// <summary>Runs until nothing is under way, and all transactions over several partitions have ended.</summary>
    private void Complete(long limitNs)
    {
        long? settlesNs = null;
        while (true)
        {
            string? left = Unfinished();
            settlesNs ??= left is null ? Scheduler.NowNs + TransactionRules.SettledNs : null;
            if (left is null)
            {
                left = TransactionRules.Unsettled(Nodes, Config.Layout);
                if (left is null)
                {
                    return;
                }

                if (Scheduler.NowNs >= settlesNs)
                {
                    Rules.Break("transactions that were left are settled soon", left);
                }
            }

            if (Scheduler.NowNs >= limitNs)
            {
                Rules.Break("after the healing everything completes", left);
            }

            RunUntil(Scheduler.NowNs + LookNs);
        }
    }

    /// <summary>
    /// Lets a caller wait: less than <see cref="RecoveryNs"/>, so that it does not keep a run from its end.
    /// </summary>
    public Task PauseAsync(double ms)
    {
        TaskCompletionSource over = new(TaskCreationOptions.RunContinuationsAsynchronously);
        long ns = Math.Min(1_000_000 + (long)(ms * 1_000_000), RecoveryNs / 4);
        Scheduler.At(Scheduler.NowNs + ns, over.SetResult);
        return over.Task;
    }

    /// <summary>A node's process has ended.</summary>
    public void Ended(SimNode node) => _nemesis.Ended(node);

    /// <summary>A node said that its log or its stored state is dead.</summary>
    public void StorageDied(SimNode node, Exception error) => _nemesis.StorageDied(node, error);

    /// <summary>
    /// Cluster time runs with the monotonic clock of whoever leads: it may be ahead by what that clock ran fast.
    /// </summary>
    private TimeSpan TtlSlack()
    {
        double fast = Config.Classes.Contains(FaultClass.ClockDrift)
            ? SimClient.TtlMsMax * (1 - (1 / Nemesis.RateMax))
            : 0;
        return TimeSpan.FromMilliseconds(10 + fast);
    }

    private void CheckHistory()
    {
        CheckAccounts();
        ChangeHistory.Check(this);
        WideBank.CheckEnd(this);
        RangeClaims.CheckEnd(this);
        WideFences.CheckEnd(this);
        CheckerOptions options = new() { TtlSlack = TtlSlack(), StatesMax = CheckedStatesMax };
        EphemeralHistory ephemeral = new(Rules, Config.Groups, Mover);
        IEnumerable<Call> ofKeys = History.Calls.Where(
            static call => call.Kind is not (CallKind.Next or CallKind.Acquire));
        if (RevisionHistory.Check(ofKeys) is { } contradiction)
        {
            Rules.Break("one revision is one value", contradiction);
        }

        ofKeys = ofKeys.Where(static call => call.AtRevision is null);
        if (Config.Evicts && EvictedHistory.Check(ofKeys.Where(static call => call.IsEphemeral)) is { } wrong)
        {
            Rules.Break("keys that go come back above their revisions", wrong);
        }

        if (ScanMoments.Check(ofKeys, Moments) is { } torn)
        {
            Rules.Break("a consistent scan shows one moment", torn);
        }

        if (SerializabilityChecker.Check([.. Lists.Select(static call => call.ToTransaction())]) is [var cycle, ..])
        {
            Rules.Break("transactions are strictly serializable", cycle.ToString());
        }

        HistoryVerdict verdict = LinearizabilityChecker.Check(
            ofKeys.Where(call => !call.IsEphemeral || !Config.Evicts)
                .SelectMany(call => call.IsEphemeral ? ephemeral.Of(call) : [CallHistory.Of(call)]),
            options);
        if (verdict.Verdict == Verdict.NotLinearizable)
        {
            Rules.Break("histories are linearizable", verdict.Findings());
        }

        CheckSequences();
        CheckLocks();
        CheckedKeys = verdict.Keys.Count;
        Undecided = verdict.Keys.Count(static key => key.Verdict == Verdict.Undecided);
    }

    private void CheckAccounts()
    {
        foreach (SimNode node in Nodes)
        {
            for (int slot = 0; slot < Config.Layout.Count; slot++)
            {
                if (!node.Loops!.Group(slot).State.AccountsMatch)
                {
                    Rules.Break(
                        "what users store is counted",
                        $"node {node.Id} counts something else than is there in {Config.Layout.GroupOf(slot).Name}");
                }
            }
        }
    }

    private void CheckLocks()
    {
        bool isExact = !Config.Classes.Contains(FaultClass.ClockDrift);
        HistoryOperation[] writes =
            [.. History.Calls.Where(static call => call.Fence is not null).Select(CallHistory.Of)];
        foreach (IGrouping<string, Call> holdings in History.Calls.Where(
            static call => call is { Kind: CallKind.Acquire, Outcome: CallOutcome.Ok })
            .GroupBy(static call => call.Name))
        {
            KeyVerdict verdict = LockChecker.Check(holdings.Key, CallHistory.OfLock(holdings), writes, isExact);
            if (verdict.Verdict != Verdict.Linearizable)
            {
                Rules.Break(
                    "locks have one holder at a time and growing tokens", new HistoryVerdict([verdict]).Findings());
            }
        }
    }

    private void CheckSequences()
    {
        foreach (IGrouping<string, Call> sequence in History.Calls.Where(static call => call.Kind == CallKind.Next)
            .GroupBy(static call => call.Key))
        {
            if (SequenceHistory.Check(sequence.Key, [.. sequence]) is { } wrong)
            {
                Rules.Break("sequences hand out every value once and in order", wrong);
            }
        }
    }

    /// <summary>Runs until this moment. Throws at the first broken rule.</summary>
    public void RunUntil(long untilNs)
    {
        while (Scheduler.RunNext(untilNs))
        {
            if (Rules.Broken is { } broken)
            {
                throw broken;
            }

            if (FurtherRule?.Invoke(this) is { } words)
            {
                Rules.Break("a further rule", words);
            }

            if (Scheduler.Escaped is { } escaped)
            {
                Rules.Break("nothing runs outside the run", escaped);
            }
        }
    }

    /// <summary>How every node stands in every group.</summary>
    private string Standing() => string.Join("; ", Nodes.Where(static node => node.Loops is not null)
        .SelectMany(node => Enumerable.Range(0, Config.Layout.Count).Select(slot => StandingOf(node, slot))));

    private string StandingOf(SimNode node, int slot)
    {
        Group group = node.Loops!.Group(slot);
        return $"n{node.Id} {Config.Layout.GroupOf(slot).Name} {group.Stamp} {group.Core.Role} term "
            + $"{group.Core.Term} leader {group.Core.Leader} last {group.Core.LastIndex} durable "
            + $"{group.Core.DurableIndex} applied {group.Applied} votes {group.Core.IsVoting} "
            + $"rejoins {group.Core.CanRejoin}";
    }

    /// <summary>What has not come to its end yet, or null.</summary>
    private string? Unfinished()
    {
        foreach (SimNode node in Nodes)
        {
            if (!node.IsUp || node.IsPaused || node.IsRejoining)
            {
                return $"node {node.Id} is "
                    + $"{(node.IsUp ? node.IsPaused ? "paused" : "without a vote: " + Standing() : "down")}";
            }
        }

        if (Config.Upgrade.Count > 0
            && Nodes.FirstOrDefault(static node => node.Loops!.FeatureLevel < node.Features.Max) is { } below)
        {
            return $"node {below.Id} knows feature level {below.Loops!.FeatureLevel}, and every node supports more";
        }

        int running = _clients.Sum(static client => client.Running)
            + _users.Count(static user => user.IsRunning)
            + (_administrator?.IsRunning == true ? 1 : 0);
        if (running > 0)
        {
            return $"{running} callers wait for {History.Open} operations";
        }

        for (int slot = 0; slot < Config.Layout.Count; slot++)
        {
            ulong committed = Rules.Committed(slot);
            string name = Config.Layout.GroupOf(slot).Name;
            if (!Nodes.Any(node => node.Loops!.Group(slot) is { IsLeader: true, Status.Serving: true }))
            {
                return $"{name} has no leader that serves: {Standing()}";
            }

            foreach (SimNode node in Nodes)
            {
                Group partition = node.Loops!.Group(slot);
                if (partition.Applied.Value != committed
                    || partition.Core.LastIndex.Value != committed
                    || !partition.Core.IsVoting)
                {
                    return $"node {node.Id} has applied {partition.Applied} of {committed} entries of {name}, and its "
                        + $"log ends at {partition.Core.LastIndex}; {partition.Stamp}, "
                        + $"{(partition.Core.IsVoting ? "votes" : "without a vote")}";
                }
            }
        }

        return null;
    }
}
