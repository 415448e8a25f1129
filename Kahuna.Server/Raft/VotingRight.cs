namespace Kahuna.Server.Raft;

/// <summary>
/// What a voter may do, given what it may have forgotten. A forgotten vote or acknowledgement would break Raft's
/// guarantees.
/// </summary>
internal enum VotingRight : byte
{
    /// <summary>The data directory holds every promise that the node ever made.</summary>
    Full,

    /// <summary>
    /// The data directory is new, and it is not proven yet that this node never took part. It follows and stores, but
    /// grants no vote, does not campaign, and marks its acknowledgements as not to be counted.
    /// </summary>
    Unproven,

    /// <summary>
    /// The data directory was rebuilt. As unproven, until every voter has reported its term and a leader has restored
    /// the log (<see cref="Raft.Rejoining"/>).
    /// </summary>
    Rejoining,

    /// <summary>
    /// A restarted member of a volatile group. It remembers term and vote, but has lost the log that it acknowledged.
    /// It gives no vote and no counted answer until a leader has restored the log (<see cref="Raft.Rejoining"/>); then
    /// it votes again by itself.
    /// </summary>
    Amnesiac,
}
