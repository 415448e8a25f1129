using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>What the requests of a group work with. Immutable; its parts belong to the group and its loop.</summary>
/// <param name="Group">The group.</param>
/// <param name="Options">Sizes and times.</param>
/// <param name="Applied">The group's state.</param>
/// <param name="Memory">The group's share of the node's memory.</param>
internal sealed record RequestParts(GroupId Group, LoopOptions Options, AppliedState Applied, MemoryShare Memory)
{
    /// <summary>The time of the loop's turns.</summary>
    public required TurnClock Clock { get; init; }

    /// <summary>How the node's log does.</summary>
    public required LogWatch LogWatch { get; init; }

    /// <summary>Where answers go.</summary>
    public required ReplyFrames Replies { get; init; }
}
