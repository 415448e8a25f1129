using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>Where a group stands when a segment begins. <paramref name="LastTerm"/> is the default when it is not known. Immutable.</summary>
internal readonly record struct GroupCheckpoint(GroupId Group, HardState HardState, LogIndex LastIndex, Term LastTerm);
