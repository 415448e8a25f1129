using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>The end of a group's log after a batch, and its hard state by then. A value.</summary>
internal readonly record struct GroupTail(GroupId Group, LogIndex Last, Term LastTerm, HardState HardState);
