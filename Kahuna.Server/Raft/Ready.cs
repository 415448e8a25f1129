using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>What a Ready asks for besides its lists. Taken when the first part of it is read, so that inputs between that and Advance change the next one.</summary>
internal readonly record struct Ready(
    HardState HardState,
    bool PromisesChanged,
    bool HardStateChanged,
    (LogIndex First, LogIndex Last) Unpersisted,
    (LogIndex First, LogIndex Last) Committed);
