using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>Entries that a follower needs and memory no longer holds: read them from storage and hand them to <see cref="RaftCore.CompleteFetch"/>.</summary>
internal readonly record struct LogFetch(NodeId Follower, LogIndex First, int BytesMax);
