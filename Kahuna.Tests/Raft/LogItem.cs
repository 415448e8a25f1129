using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Raft;

/// <summary>A log entry on a test node's disk.</summary>
internal sealed record LogItem(Term Term, EntryKind Kind, string Text);
