using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Passes frames and link changes on to a receiver that is set later. Links are built before the loops, which need
/// them. Any thread.
/// </summary>
internal sealed class PeerRelay : IPeerReceiver
{
    public IPeerReceiver? Receiver { get; set; }

    public void Receive(NodeId from, ReadOnlySpan<byte> payload) => Receiver?.Receive(from, payload);

    public void LinkChanged(NodeId peer, bool up) => Receiver?.LinkChanged(peer, up);
}
