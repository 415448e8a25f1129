using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>A wish to read entries for a follower.</summary>
internal readonly record struct FetchRequest(ILogSink Sink, GroupId Group, NodeId Follower, LogIndex First, int BytesMax);
