using System.Diagnostics;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Api;

/// <summary>
/// A stream's request that this node forwards to the leader because the client cannot reach it. A value.
/// </summary>
/// <param name="Command">The checked command.</param>
/// <param name="Number">The request's number on its stream.</param>
/// <param name="WaitMs">The longest wait in ms; 0: no limit.</param>
/// <param name="Sink">Receives the reply.</param>
internal readonly record struct ForwardedRequest(byte[] Command, uint Number, uint WaitMs, ReplySink Sink)
{
    /// <summary>The client's activity; the default: the request is not traced.</summary>
    public ActivityContext Parent { get; init; }
}
