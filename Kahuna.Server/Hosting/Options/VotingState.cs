namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// What a data directory may do in elections and for commits (docs/adr/0009-who-may-vote.md). Recorded in
/// <c>node.json</c>.
/// </summary>
internal enum VotingState
{
    /// <summary>
    /// New: it may have replaced a lost one, and does not vote until all other nodes have confirmed that they never
    /// knew another one.
    /// </summary>
    Unproven,

    /// <summary>Created by <c>--rebuild</c>: it does not vote until a leader has restored it.</summary>
    Rejoining,

    /// <summary>It votes and needs no further confirmation.</summary>
    Yes,
}
