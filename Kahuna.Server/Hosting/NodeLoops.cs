using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Hosting;

/// <summary>Derives the options of a node's loops and of its checkpoints. Stateless.</summary>
internal static class NodeLoops
{
    /// <summary>
    /// Checkpoints per kept log. A restart replays about this fraction of it, and every entry is checkpointed long
    /// before it is cut.
    /// </summary>
    private const int FlushesPerKeptLog = 4;

    /// <summary>The options of the loops.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="members">Says whether this node votes.</param>
    /// <param name="limits">Limits of each partition's state.</param>
    /// <param name="seed">Seed of the loops' random numbers; differs at each start.</param>
    public static LoopOptions OptionsOf(NodeOptions options, MemberRegistry members, StateLimits limits, ulong seed)
    {
        NodeId[] voters = [.. options.Peers.Select(peer => peer.Id)];
        return new LoopOptions
        {
            Self = options.NodeId,
            Voters = voters,
            PreferredLeader = PreferredLeaders.For(options.LeaderPlacement == LeaderPlacement.Together, voters),
            Loops = Math.Clamp(Math.Min(Environment.ProcessorCount / 2, options.Partitions), 1, 32),
            StateLimits = limits,
            FeatureLevelMax = options.FeatureLevelMax,
            HasEphemeral = true,
            HasReadLeases = options.Reads == ReadConfirmation.Lease,
            MayHavePromised = members.HasPromised,
            Seed = seed,
            FlushLogBytes = options.LogKeepBytes / FlushesPerKeptLog,
            PledgeTicks = LoopOptions.TicksOf(options.EphemeralPatience),
            Voting = members.Voting switch
            {
                VotingState.Yes => VotingRight.Full,
                VotingState.Rejoining => VotingRight.Rejoining,
                _ => VotingRight.Unproven,
            },
        };
    }

    /// <summary>The options of checkpoints and snapshots.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="limits">Limits of each partition's state.</param>
    /// <param name="firstTransfer">Id of the first snapshot that is sent; differs at each start.</param>
    public static CheckpointOptions CheckpointOptionsOf(NodeOptions options, StateLimits limits, ulong firstTransfer) =>
        new()
        {
            Self = options.NodeId,
            StateLimits = limits,
            BytesPerSecond = options.BackgroundBytesPerSecond,
            UrgentLogBytes = options.LogKeepBytes,
            FirstTransfer = firstTransfer,
        };
}
