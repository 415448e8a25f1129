using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>Where the record lies that holds entry <paramref name="First"/> of a group as its first one.</summary>
internal readonly record struct RecordPosition(LogIndex First, ulong Segment, long Offset);
