using System.Collections.Concurrent;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation;

/// <summary>What a seed draws for its cluster, its clients and its faults. Immutable.</summary>
internal sealed record SimConfig
{
    /// <summary>Clocks of nodes run faster than those of clients by this at most.</summary>
    private const double CommandLifeSlack = Faults.Nemesis.RateMax + 0.1;

    /// <summary>Its own draws, so that seeds without hostile clients are as they were.</summary>
    private const int HostileFork = 21;

    private const int UpgradeFork = 29;

    private const int ScansFork = 31;
    private const int BatchesFork = 35;
    private const int BanksFork = 40;
    private const int ListsFork = 41;
    private const int WideBanksFork = 42;
    private const int RangesFork = 45;
    private const int WideScriptsFork = 46;
    private const int WideFencesFork = 47;
    private const int FenceCallersFork = 48;
    private const int UsersFork = 49;
    private const int LeasesFork = 51;

    /// <summary>Its own draws, so that hostile clients of other kinds are as they were.</summary>
    private const int PagesFork = 32;

    private const int ConsistentScansFork = 33;
    private const int ChangesFork = 36;
    private const int WatchCallersFork = 39;

    /// <summary>As <see cref="HostileFork"/>, for seeds in which no slot moves.</summary>
    private const int SlotsFork = 27;

    private static readonly ConcurrentDictionary<(int Partitions, bool Ephemeral), GroupLayout> s_layouts = new();

    public required ulong Seed { get; init; }

    /// <summary>Virtual seconds of load and faults; the healing comes after.</summary>
    public required double Seconds { get; init; }

    public required int Nodes { get; init; }

    public required int Groups { get; init; }

    public required int Loops { get; init; }

    public required int Clients { get; init; }

    public required int CallersPerClient { get; init; }

    /// <summary>How often the slot that is reserved for it moves to another partition.</summary>
    public int SlotMoves { get; init; }

    /// <summary>Mean pause of a caller between two operations.</summary>
    public required int ThinkMs { get; init; }

    /// <summary>
    /// All callers begin their operations at the same moments, some time apart: what is together in a batch is more.
    /// </summary>
    public required bool Together { get; init; }

    public required int KeySlots { get; init; }

    public required int RequestTimeoutMs { get; init; }

    /// <summary>Part of the calls that their caller abandons.</summary>
    public required double Abandoned { get; init; }

    public required double Ttls { get; init; }

    /// <summary>Part of the values that take up several sectors.</summary>
    public required double LargeValues { get; init; }

    /// <summary>Part of the calls that go to any node as a unary call, which it may forward.</summary>
    public required double Unary { get; init; }

    /// <summary>Streams of clients never answer at once, even when they could.</summary>
    public required bool Yields { get; init; }

    public required int ElectionTicks { get; init; }

    /// <summary>The shortest time after which a node that hears no leader asks for votes.</summary>
    public long ElectionNs => ElectionTicks * TickMs * 1_000_000L;

    public required int HeartbeatTicks { get; init; }

    /// <summary>Leaders of persistent groups serve reads under a lease; clocks drift less then.</summary>
    public bool ReadLeases { get; init; }

    /// <summary>With leases: the node that has none and promises none.</summary>
    public NodeId WithoutLeases { get; init; }

    public required int TickMs { get; init; }

    public required RaftLimits RaftLimits { get; init; }

    public required int EntryBytesMax { get; init; }

    public required int LogBatchesInFlight { get; init; }

    public required int WriteBytesMax { get; init; }

    public required long UncommittedBytesMax { get; init; }

    public required int SegmentBytes { get; init; }

    public required int KeptSegments { get; init; }

    public required long FlushLogBytes { get; init; }

    public required int SliceBytes { get; init; }

    public required int ChunksInFlight { get; init; }

    public required long BackgroundBytesPerSecond { get; init; }

    /// <summary>The shipped store of whole files, instead of the model of the one that takes changes.</summary>
    public required bool WholeStates { get; init; }

    public required bool SpreadLeaders { get; init; }

    public required StateLimits StateLimits { get; init; }

    /// <summary>Mean one-way delay between nodes, and between clients and nodes.</summary>
    public required long DelayNs { get; init; }

    public required long SyncNs { get; init; }

    /// <summary>Mean delay until a loop that has something to do runs.</summary>
    public required long TurnNs { get; init; }

    public required double Loss { get; init; }

    public required double Duplication { get; init; }

    public required double Reordering { get; init; }

    /// <summary>Mean time between two faults.</summary>
    public required double FaultSeconds { get; init; }

    /// <summary>Mean time that a short fault lasts.</summary>
    public required double FaultLastsSeconds { get; init; }

    public required IReadOnlySet<FaultClass> Classes { get; init; }

    /// <summary>There are ephemeral groups and the meta group.</summary>
    public bool HasEphemeral { get; init; }

    /// <summary>Part of the calls that are for ephemeral keys.</summary>
    public double Ephemeral { get; init; }

    /// <summary>Part of the calls that take values of a sequence.</summary>
    public double Sequences { get; init; }

    /// <summary>
    /// How long a member without an ephemeral group's data, and one with them, wait for a leader before they give an
    /// epoch up.
    /// </summary>
    public (int AmnesiacMs, int OtherMs) Pledges { get; init; }

    public int EphemeralEntriesInFlight { get; init; } = 2;

    /// <summary>Cluster time between two comparisons of states.</summary>
    public long CheckIntervalMs { get; init; } = 60_000;

    /// <summary>Memory that the ephemeral keys of a node may take up.</summary>
    public long EphemeralBytesMax { get; init; } = long.MaxValue;

    /// <summary>
    /// A connection over which nothing comes for so long is given up: well before what is on its way could outlive the
    /// memory of it.
    /// </summary>
    public long SilenceNs => SessionLimits ? 2_000_000_000 : long.MaxValue;

    /// <summary>Callers of each client that ask for locks.</summary>
    public int LockCallers { get; init; }

    /// <summary>Some who hold locks run transactions over several partitions under their tokens.</summary>
    public bool HasWideFences { get; init; }

    /// <summary>
    /// Callers of each of the first clients that lose their locks while they run such transactions; 0 without these.
    /// </summary>
    public int FenceCallers { get; init; }

    /// <summary>Nodes check who makes requests; there are users whose rights change.</summary>
    public bool HasUsers { get; init; }

    /// <summary>Clients that scan the keys.</summary>
    public int Scanners { get; init; }

    /// <summary>Clients that have a caller of batches.</summary>
    public int BatchCallers { get; init; }

    /// <summary>Clients that have a caller of transactions.</summary>
    public int BankCallers { get; init; }

    /// <summary>Clients that have a caller of transactions on lists.</summary>
    public int ListCallers { get; init; }

    /// <summary>Clients that have a caller of transactions over several partitions.</summary>
    public int WideBankCallers { get; init; }

    /// <summary>Clients that have a caller of scripts over several partitions.</summary>
    public int WideScriptCallers { get; init; }

    /// <summary>Clients that have a caller of transactions that depend on ranges.</summary>
    public int RangeCallers { get; init; }

    /// <summary>The part of their scans that are consistent.</summary>
    public double ConsistentScans { get; init; }

    /// <summary>Who follows the nodes' changes.</summary>
    public int Followers { get; init; }

    /// <summary>Who watches keys.</summary>
    public int Watchers { get; init; }

    /// <summary>Clients that have a caller that watches keys.</summary>
    public int WatchCallers { get; init; }

    /// <summary>The nodes wake watch streams by the shipped dispatcher.</summary>
    public bool DispatchesWatches { get; init; }

    /// <summary>Bytes of changes that a node keeps of each group.</summary>
    public int ChangeBytes { get; init; } = 2 * ChangeLog.SegmentBytes;

    /// <summary>Bytes of a segment of them.</summary>
    public int ChangeSegmentBytes { get; init; } = ChangeLog.SegmentBytes;

    /// <summary>The longest lease of an epoch before room is made for longer ones.</summary>
    public long LeaseCeilingMs { get; init; } = 60_000;

    /// <summary>Who waits for a lock is looked after so often.</summary>
    public long WaiterCheckMs { get; init; } = 20_000;

    /// <summary>What hostile clients do beside the others; most seeds have none.</summary>
    public IReadOnlyList<HostileKind> Hostile { get; init; } = [];

    /// <summary>Idempotency keys that a partition remembers.</summary>
    public int IdempotencyKeysMax { get; init; } = int.MaxValue;

    /// <summary>Bytes of answers that may wait at a node for clients that do not read.</summary>
    public long ReplyRoomBytes { get; init; } = ReplyRoom.BytesMaxDefault;

    /// <summary>Keys that were not used for long go at that size.</summary>
    public bool Evicts { get; init; }

    /// <summary>What is to be kept free of that memory; null: what is usual.</summary>
    public long? EphemeralReserve { get; init; }

    /// <summary>What is remembered of clients goes as early as it may.</summary>
    public bool SessionLimits { get; init; }

    /// <summary>Sessions that a partition remembers.</summary>
    public int SessionsMax { get; init; } = int.MaxValue;

    /// <summary>A leader that does not tick for so long has stood still.</summary>
    public int StandstillMs => SessionLimits ? 1_000 : 10_000;

    /// <summary>
    /// The limits of the state, with those of sessions: as they are, or as short as the times of this run allow.
    /// </summary>
    public StateLimits AllStateLimits => (SessionLimits
        ? StateLimits with
        {
            CommandLifeMs = (long)(RequestTimeoutMs * CommandLifeSlack) + 4_000,
            SessionIdleMs = (long)(RequestTimeoutMs * CommandLifeSlack) + 9_000,
        }
        : StateLimits) with
    {
        SessionsMax = Math.Min(SessionsMax, StateLimits.SessionsMax),
        IdempotencyKeysMax = Math.Min(Math.Min(SessionsMax, IdempotencyKeysMax), StateLimits.IdempotencyKeysMax),
        LeaseCeilingMs = LeaseCeilingMs,
        WaiterCheckMs = WaiterCheckMs,
    };

    public GroupLayout Layout =>
        s_layouts.GetOrAdd((Groups, HasEphemeral), static key => new(key.Partitions, key.Ephemeral));

    /// <summary>How many nodes may be without their data at a time.</summary>
    public int Spare => (Nodes - 1) / 2;

    /// <summary>The delay between nodes after the healing, when nothing is slow: far below all timeouts.</summary>
    public long HealedDelayNs => Math.Min(DelayNs, 500_000);

    /// <summary>The nodes that get another build during the run; none in most seeds.</summary>
    public IReadOnlyList<RollingUpgrade.Step> Upgrade { get; init; } = [];

    public static SimConfig Draw(ulong seed, double seconds)
    {
        SimConfig config = DrawFaults(seed, seconds);
        return config with { Upgrade = RollingUpgrade.Draw(config, new SimRandom(seed).Fork(UpgradeFork)) };
    }

    private static SimConfig DrawFaults(ulong seed, double seconds)
    {
        SimRandom random = new SimRandom(seed).Fork(1);
        SimRandom further = new SimRandom(seed).Fork(6);
        bool hasEphemeral = further.Chance(0.7);
        SimRandom room = new SimRandom(seed).Fork(13);
        HashSet<FaultClass> classes =
        [
            .. Enum.GetValues<FaultClass>().Where(kind =>
                kind is not (FaultClass.LostLog or FaultClass.ReplacedTail or FaultClass.DeafLeader)
                    && random.Chance(0.5)),
        ];
        if (new SimRandom(seed).Fork(17).Chance(0.5))
        {
            classes.Add(FaultClass.LostLog);
        }

        if (new SimRandom(seed).Fork(23).Chance(0.5))
        {
            classes.Add(FaultClass.ReplacedTail);
        }

        if (new SimRandom(seed).Fork(25).Chance(0.5))
        {
            classes.Add(FaultClass.DeafLeader);
        }

        int nodes = random.Pick([3, 3, 3, 3, 3, 5, 5, 4, 2, 1, 6, 7]);
        int clients = random.Between(1, 15);
        int callers = random.Between(1, 3);
        bool tight = random.Chance(0.3);
        int segment = 4096 * random.Pick([1, 1, 1, 2, 3, 4, 6, 8]);
        bool storm = random.Chance(0.15);
        SimConfig config = new()
        {
            Seed = seed,
            Seconds = seconds,
            Nodes = nodes,
            Groups = random.Pick([1, 1, 2, 3, 4, 8]),
            Loops = random.Chance(0.25) ? 2 : 1,
            Clients = clients,
            CallersPerClient = callers,
            ThinkMs = Math.Max(40, clients * callers * random.Between(20, 120)),
            KeySlots = random.Between(2, 24),
            RequestTimeoutMs = random.Pick([300, 1_000, 3_000, 10_000]),
            Abandoned = random.Pick([0, 0.02, 0.15]),
            Ttls = random.Pick([0, 0.1, 0.3]),
            ElectionTicks = random.Pick([4, 10, 16, 16]),
            HeartbeatTicks = random.Pick([1, 2, 2]),
            TickMs = random.Pick([20, 50, 50, 100]),
            EntryBytesMax = tight ? 1 : random.Pick([200, 4_096, 512 * 1024]),
            LogBatchesInFlight = tight ? 1 : random.Pick([1, 2, 4]),
            WriteBytesMax = random.Pick([1, 300, 8 << 20]),
            UncommittedBytesMax = random.Pick([300, 64 << 20]),
            SegmentBytes = segment,
            KeptSegments = random.Pick([1, 1, 2, 3, 4]),
            FlushLogBytes = random.Pick([1, 1, segment / 16, segment / 2, segment, segment * 3 / 2]),
            SliceBytes = random.Pick([64, 500, 16_000]),
            ChunksInFlight = random.Pick([1, 2, 8]),
            BackgroundBytesPerSecond = random.Pick([20_000, 1_000_000, 100_000_000]),
            WholeStates = random.Chance(0.4),
            SpreadLeaders = random.Chance(0.5),
            StateLimits = random.Chance(0.5)
                ? new StateLimits()
                : new StateLimits
                {
                    HistoryPerKey = random.Between(1, 4),
                    HistoryBytes = random.Between(200, 4_000),
                    HistoryAgeMs = random.Between(1_000, 60_000),
                },
            DelayNs = classes.Contains(FaultClass.SlowNetwork)
                ? random.Between(2_000_000, 30_000_000)
                : random.Between(50_000, 1_000_000),
            SyncNs = random.Between(50_000, 4_000_000),
            TurnNs = random.Pick([2_000, 20_000, 500_000]),
            Loss = classes.Contains(FaultClass.Loss) ? random.NextDouble() * 0.1 : 0,
            Duplication = classes.Contains(FaultClass.Duplication) ? random.NextDouble() * 0.1 : 0,
            Reordering = classes.Contains(FaultClass.Reordering) ? random.NextDouble() * 0.2 : 0,
            FaultSeconds = storm ? 0.2 + random.Exponential(0.5) : 1 + random.Exponential(5),
            FaultLastsSeconds = storm ? 0.3 : 2,
            Classes = classes,
            HasEphemeral = hasEphemeral,
            Ephemeral = hasEphemeral ? further.Pick([0.3, 0.6, 0.9]) : 0,
            EphemeralEntriesInFlight = further.Pick([1, 2, 100]),
            Pledges = further.Pick([(1_000, 4_000), (3_000, 6_000), (10_000, 20_000)]),
            Sequences = further.Pick([0, 0.1, 0.4]),
            SessionLimits = further.Chance(0.6),
            SessionsMax = further.Chance(0.1) ? further.Between(2, 60) : int.MaxValue,
            LockCallers = further.Pick([0, 0, 1, 1, 2]),
            LeaseCeilingMs = further.Pick([300, 2_000, 60_000]),
            WaiterCheckMs = further.Pick([1_000, 20_000]),
            Unary = random.Pick([0, 0, 0.1, 0.5]),
            LargeValues = random.Pick([0.05, 0.05, 0.4]),
            Yields = random.Chance(0.3),
            Together = random.Chance(0.3),
            RaftLimits = random.Chance(0.5) ? new RaftLimits() : new RaftLimits
            {
                AppendBytesMax = random.Pick([1, 300, 8_000]),
                InFlightBytesMax = random.Pick([1, 4_000, 1 << 20]),
                InFlightAppendsMax = random.Pick([1, 2, 16]),
                CacheBytes = random.Pick([0, 1_000, 64_000]),
                CacheBytesMax = random.Pick([64_000, 1 << 20]),
            },
        };
        // With many groups there would never be a moment in which none compares its states, and a run ends when nothing
        // is under way.
        config = config with
        {
            CheckIntervalMs = config.Groups > 2 ? 20_000 : new SimRandom(seed).Fork(18).Pick([4_000, 8_000, 20_000]),
        };
        config = config with
        {
            RaftLimits = config.RaftLimits with
            {
                ApplyBytesMax = new SimRandom(seed).Fork(19).Pick([1, 2_000, 1 << 20]),
                CacheTicks = new SimRandom(seed).Fork(22).Pick([1, 40, 300]),
            },
        };
        SimRandom moves = new SimRandom(seed).Fork(SlotsFork);
        if (config is { HasEphemeral: true, Groups: > 1 } && moves.Chance(0.5))
        {
            config = config with { SlotMoves = moves.Pick([1, 1, 2, 3]) };
        }

        config = config with
        {
            Scanners = new SimRandom(seed).Fork(ScansFork).Pick([0, 0, 1, 2]),
            BatchCallers = new SimRandom(seed).Fork(BatchesFork).Pick([0, 0, 1, 2]),
            BankCallers = new SimRandom(seed).Fork(BanksFork).Pick([0, 0, 1, 2]),
            WideBankCallers = config.Groups > 1 ? new SimRandom(seed).Fork(WideBanksFork).Pick([0, 1, 2, 4]) : 0,
            WideScriptCallers = config.Groups > 1 ? new SimRandom(seed).Fork(WideScriptsFork).Pick([0, 0, 1, 2]) : 0,
            HasWideFences = config.Groups > 1 && new SimRandom(seed).Fork(WideFencesFork).Chance(0.6),
            RangeCallers = new SimRandom(seed).Fork(RangesFork).Pick([0, 0, 2, 3]),
            ListCallers = new SimRandom(seed).Fork(ListsFork).Pick([0, 0, 2, 4]),
            ConsistentScans = new SimRandom(seed).Fork(ConsistentScansFork).Pick([0, 0.5, 0.9]),
            HasUsers = config.HasEphemeral && new SimRandom(seed).Fork(UsersFork).Chance(0.5),
        };
        if (config.HasWideFences)
        {
            config = config with { FenceCallers = new SimRandom(seed).Fork(FenceCallersFork).Pick([1, 1, 2]) };
        }

        SimRandom leases = new SimRandom(seed).Fork(LeasesFork);
        config = config with
        {
            ReadLeases = leases.Chance(0.4),
            WithoutLeases = leases.Chance(0.15) ? new NodeId((ushort)leases.Between(1, config.Nodes)) : NodeId.None,
        };
        SimRandom changes = new SimRandom(seed).Fork(ChangesFork);
        int changeSegment = changes.Pick([2_048, 8_192, 65_536, ChangeLog.SegmentBytes]);
        config = config with
        {
            Followers = changes.Pick([0, 1, 2, 4]),
            ChangeSegmentBytes = changeSegment,
            ChangeBytes = changeSegment * changes.Pick([2, 2, 3, 6]),
            Watchers = changes.Pick([0, 1, 2, 4]),
            DispatchesWatches = changes.Chance(0.5),
            WatchCallers = new SimRandom(seed).Fork(WatchCallersFork).Pick([0, 0, 1, 2]),
        };
        SimRandom hostile = new SimRandom(seed).Fork(HostileFork);
        if (hostile.Chance(0.15))
        {
            return WithHostileClients(config, hostile);
        }

        return config is { HasEphemeral: true, Groups: 1 } && room.Chance(0.7) ? WithLittleRoom(config, room) : config;
    }

    /// <summary>
    /// One or two clients take what they can get. What a cluster has for all of them is not drawn down to nothing, and
    /// there are times without faults: only then others can be promised anything.
    /// </summary>
    private static SimConfig WithHostileClients(SimConfig config, SimRandom random)
    {
        HostileKind[] kinds = [.. Enum.GetValues<HostileKind>().Where(static kind => kind != HostileKind.Pages)];
        HostileKind[] pages = new SimRandom(config.Seed).Fork(PagesFork).Chance(0.3) ? [HostileKind.Pages] : [];
        return config with
        {
            SlotMoves = 0,
            Hostile = [.. Enumerable.Range(0, random.Between(1, 2)).Select(_ => random.Pick(kinds)), .. pages],
            ReplyRoomBytes = random.Pick([300_000, 1_000_000]),
            IdempotencyKeysMax = random.Pick([100, 1_000]),
            SessionsMax = int.MaxValue,
            EntryBytesMax = Math.Max(4_096, config.EntryBytesMax),
            WriteBytesMax = 8 << 20,
            UncommittedBytesMax = 64 << 20,
            RaftLimits = new RaftLimits(),
            BackgroundBytesPerSecond = Math.Max(1_000_000, config.BackgroundBytesPerSecond),
            Loss = 0,
            FaultSeconds = 12 + config.FaultSeconds,
            Classes = config.Classes.Except([FaultClass.Loss, FaultClass.ClockDrift]).ToHashSet(),
        };
    }

    /// <summary>
    /// The ephemeral keys of the one group have little room. Most of what its nodes have in memory are tables and a
    /// slab of 1 MB, so that what is left of these is measured: writes are refused when the logs and tables have grown
    /// a little, or keys go when so much of the slab is in use. Rows of keys that were forgotten count as free, so that
    /// the room is less than nothing in some runs.
    /// </summary>
    private static SimConfig WithLittleRoom(SimConfig config, SimRandom room) => room.Chance(0.3)
        ? config with { EphemeralBytesMax = room.Between(1_830_000, 1_950_000) }
        : config with
        {
            Evicts = true,
            EphemeralBytesMax = 4_600_000,
            EphemeralReserve = (1 << 20) + 4_000 - room.Between(0, 8_000),
        };
}
