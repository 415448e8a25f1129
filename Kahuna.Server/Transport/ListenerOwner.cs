using System.Net.Sockets;

namespace Kahuna.Server.Transport;

/// <summary>What a listener hands out and reports. Immutable; called from any thread, must not block.</summary>
/// <param name="TakePeer">Takes over a connection whose greeting is a node's.</param>
/// <param name="Trouble">Hears why a connection could not be accepted; limits by itself how often that is logged.</param>
/// <param name="Failed">The listener accepts nothing any more, though nobody asked it to end; the node must stop.</param>
internal sealed record ListenerOwner(Action<Socket> TakePeer, Action<string> Trouble, Action<Exception> Failed);
