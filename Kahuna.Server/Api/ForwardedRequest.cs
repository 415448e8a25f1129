using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api;

/// <summary>A request of a stream whose client does not reach the leader: this node brings it there. A value.</summary>
/// <param name="Command">The checked command.</param>
/// <param name="Number">The request's number on its stream.</param>
/// <param name="WaitMs">How long it may wait; 0: no limit.</param>
/// <param name="Sink">Gets the one reply.</param>
internal readonly record struct ForwardedRequest(byte[] Command, uint Number, uint WaitMs, ReplySink Sink);
