using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>Where recovery left off and writing goes on. Both files are handed over.</summary>
internal readonly record struct LogTail(ulong LogId, ulong Segment, long Position, ulong NextBatch, IDiskFile File, LogExtentFile Extents);
