using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Partitions;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>The shipped parts of one life of a node, put together as the shipped host does it.</summary>
internal sealed record NodeParts(
    LoopSet Loops, CheckpointService Keeper, IStateStore States, ClusterView View, RequestAdmission Admission,
    ChangeLogs Changes, TransactionSettler Settler)
{
    public static SegmentedLogOptions LogSizes(SimConfig config) => new()
    {
        SegmentBytes = config.SegmentBytes,
        FirstSegmentBytes = config.SegmentBytes,
        KeepBytes = (long)config.SegmentBytes * config.KeptSegments,
        WriteBytesMax = config.WriteBytesMax,
    };

    public static IReadOnlyList<Uri> Addresses(SimConfig config) => [.. Enumerable.Range(1, config.Nodes).Select(static id => new Uri($"https://n{id}:1"))];

    public static NodeParts Assemble(SimNode node, SimCluster cluster, SimLog log, ulong start)
    {
        SimConfig config = cluster.Config;
        FileStateStore files = new(node.Disk, SimNode.DataPath + "/state");
        IStateStore states = config.WholeStates ? files : new MergingStateStore(files);
        NodeId self = new((ushort)node.Id);
        NodeId[] voters = [.. Enumerable.Range(1, config.Nodes).Select(static id => new NodeId((ushort)id))];
        ClusterView view = new(
            new ClusterIdentity("sim", self, "1", config.Groups, [.. voters.Zip(Addresses(config))]),
            config.HasEphemeral);
        view.Failed += (group, error) => Judge(node, group, error);
        view.StorageDead += node.Die;
        StateLimits limits = config.AllStateLimits with
        {
            HashSecret = new HashSecret(start, ~start),
            Features = node.Features,
        };
        CheckpointService keeper = new(
            Keeping(config, self, limits), new CheckpointPorts(states, log, node, node.Clock, node.Say), node.Die);
        LoopOptions options = Options(config, self, voters, start) with
        {
            StateLimits = limits,
            Voting = node.IsRejoining ? VotingRight.Rejoining : VotingRight.Full,
        };
        ChangeLogs changes = new(
            config.Layout, (long)config.ChangeBytes * config.Layout.Count, config.ChangeSegmentBytes);
        TransactionSettler settler = new(node.Clock, new SettlingEvents(node));
        LoopSet loops = new(options, new LoopPorts(config.Groups, node.Clock, node, log, node, view)
        {
            States = states,
            Checkpoints = keeper,
            FatalErrors = RethrownErrors.Shared,
            Changes = changes,
            Settler = settler,
            Memory = new EphemeralMemory(config.EphemeralBytesMax, config.Evicts, config.EphemeralReserve),
            Report = node.Say,
        });
        view.ReadCommitIndexFrom(partition => loops.Group(partition).CommitIndex.Value);
        RequestAdmission admission = new(new Router(loops, view), 1 << 20)
        {
            Room = new ReplyRoom(config.ReplyRoomBytes),
            Gate = node.Access?.Gate,
        };
        return new NodeParts(loops, keeper, states, view, admission, changes, settler);
    }

    /// <summary>
    /// A group whose data cannot be used stops alone. Here the start counts as refused: what explains it is judged, and
    /// how the node comes back, as for other damage.
    /// </summary>
    private static void Judge(SimNode node, GroupId group, Exception error)
    {
        if (error is GroupDamagedException)
        {
            throw new StorageException(error.Message, error);
        }

        node.Break($"{group.Name} has failed: {error}");
    }

    private static CheckpointOptions Keeping(SimConfig config, NodeId self, StateLimits limits) => new()
    {
        Self = self,
        BytesPerSecond = config.BackgroundBytesPerSecond,
        UrgentLogBytes = LogSizes(config).KeepBytes,
        SliceBytes = config.SliceBytes,
        ChunkBytes = config.SliceBytes,
        ChunksInFlight = config.ChunksInFlight,
        FreshLogBytes = config.FlushLogBytes / 4,
        StateLimits = limits,
        FirstTransfer = limits.HashSecret.First,
    };

    private static LoopOptions Options(SimConfig config, NodeId self, IReadOnlyList<NodeId> voters, ulong start) =>
        new()
        {
            Self = self,
            Voters = voters,
            PreferredLeader = PreferredLeaders.For(!config.SpreadLeaders, voters),
            Loops = config.Loops,
            TickMs = config.TickMs,
            ElectionTicks = config.ElectionTicks,
            HeartbeatTicks = config.HeartbeatTicks,
            HasReadLeases = config.ReadLeases && self != config.WithoutLeases,
            MayHavePromised = config.ReadLeases && self != config.WithoutLeases,
            RaftLimits = config.RaftLimits,
            EntryBytesMax = config.EntryBytesMax,
            LogBatchesInFlight = config.LogBatchesInFlight,
            UncommittedBytesMax = config.UncommittedBytesMax,
            FlushLogBytes = config.FlushLogBytes,
            HasEphemeral = config.HasEphemeral,
            PauseMs = config.StandstillMs,
            CheckIntervalMs = config.CheckIntervalMs,
            EphemeralEntriesInFlight = config.EphemeralEntriesInFlight,
            AmnesiacPledgeTicks = config.Pledges.AmnesiacMs / config.TickMs,
            PledgeTicks = config.Pledges.OtherMs == int.MaxValue
                ? int.MaxValue
                : config.Pledges.OtherMs / config.TickMs,
            Seed = start,
        };
}
