using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>What a group consists of. Immutable; the parts belong to the group.</summary>
/// <param name="Applied">Its state.</param>
/// <param name="Requests">What clients want of it.</param>
/// <param name="Checkpointing">Its side of checkpoints.</param>
/// <param name="Durability">What its promises rest on.</param>
/// <param name="Hooks">What it does besides.</param>
/// <param name="Trace">What it has told the node's trace.</param>
internal sealed record GroupParts(
    AppliedState Applied, PendingRequests Requests, Checkpointing Checkpointing, GroupDurability Durability,
        GroupHooks Hooks, GroupTrace Trace)
{
    /// <summary>The comparison of the members' states.</summary>
    public required StateComparison Comparison { get; init; }

    /// <summary>When leadership is handed over.</summary>
    public required LeaderHandover Handover { get; init; }

    /// <summary>What the checkpoint service asks of it.</summary>
    public required CheckpointRequests Checkpoints { get; init; }

    /// <summary>What others may know of it.</summary>
    public required GroupReport Report { get; init; }

    /// <summary>Carries out what the core asks for.</summary>
    public required ReadyWork Work { get; init; }
}
