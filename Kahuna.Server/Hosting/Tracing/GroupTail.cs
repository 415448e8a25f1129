using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>Where a group's log ends with a batch, and the hard state last written by then.</summary>
internal readonly record struct GroupTail(GroupId Group, LogIndex Last, Term LastTerm, HardState HardState);
