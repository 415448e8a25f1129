using System.Collections.Concurrent;
using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Transport;

/// <summary>A directory record that accepts every directory and keeps the queries. Any thread.</summary>
internal sealed class FixedDirectory(ushort id) : IPeerDirectory
{
    public ulong OwnDirectoryId => id;

    public bool Rebuilt => false;

    public ConcurrentQueue<(NodeId Peer, ulong DirectoryId)> Met { get; } = new();

    public ConcurrentQueue<(NodeId Peer, PeerDirectoryAnswer Answer)> Said { get; } = new();

    public PeerDirectoryAnswer Meet(NodeId peer, ulong directoryId, bool rebuilt)
    {
        Met.Enqueue((peer, directoryId));
        return PeerDirectoryAnswer.OnlyDirectory;
    }

    public void Heard(NodeId peer, PeerDirectoryAnswer answer) => Said.Enqueue((peer, answer));

    public bool Linked(NodeId peer, ulong directoryId) => true;
}
