using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Raft;

/// <summary>A state of a test node: everything that was applied up to an index. The content of a snapshot.</summary>
internal sealed record StateCopy(LogIndex Index, Term Term, IReadOnlyList<LogItem> Items);
