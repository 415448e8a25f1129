namespace Kahuna.Server.Raft;

/// <summary>Role of a node in one group.</summary>
internal enum RaftRole : byte
{
    Follower,
    PreCandidate,
    Candidate,
    Leader,
    Learner,
}
