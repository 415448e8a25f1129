namespace Kahuna.Server.Raft;

/// <summary>How an election stands.</summary>
internal enum VoteOutcome : byte
{
    Open,
    Won,
    Lost,
}
