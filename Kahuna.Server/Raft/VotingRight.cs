namespace Kahuna.Server.Raft;

/// <summary>What a voter may do, by what is known of its past: a vote or an acknowledgement that it gave and forgot would break Raft's promises.</summary>
internal enum VotingRight : byte
{
    /// <summary>Its directory holds everything that it ever promised.</summary>
    Full,

    /// <summary>
    /// First start of a directory, and nobody has proved yet that this node never took part: it follows and stores, but
    /// grants no vote, does not campaign, and its acknowledgements are marked as not to be counted.
    /// </summary>
    Unproven,

    /// <summary>The directory was wiped and built anew: as unproven, until it has asked every voter for its term and was restored by a leader (<see cref="Raft.Rejoining"/>).</summary>
    Rejoining,

    /// <summary>
    /// A volatile group's member that was restarted: it remembers term and vote, and has forgotten the log that it acknowledged. It gives no vote and nothing that
    /// counts until a leader has restored it (<see cref="Raft.Rejoining"/>); then it is as before, by itself.
    /// </summary>
    Amnesiac,
}
