namespace Kahuna.Server.Partitions.Groups;

/// <summary>What is left of a group's work after the second half of a round.</summary>
[Flags]
internal enum GroupWork : byte
{
    /// <summary>Nothing.</summary>
    None = 0,

    /// <summary>Another round of this turn is due.</summary>
    Round = 1,

    /// <summary>The rest is for the next turn, so that what else waits for the loop comes in between.</summary>
    Turn = 2,
}
