using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>Breaks the circle of construction: links need a receiver, loops need the links. Any thread.</summary>
internal sealed class PeerRelay : IPeerReceiver
{
    public IPeerReceiver? Receiver { get; set; }

    public void Receive(NodeId from, ReadOnlySpan<byte> payload) => Receiver?.Receive(from, payload);

    public void LinkChanged(NodeId peer, bool up) => Receiver?.LinkChanged(peer, up);
}
