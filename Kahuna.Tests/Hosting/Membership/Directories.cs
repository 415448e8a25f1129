using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting.Membership;

/// <summary>The data directories of a cluster of three, without nodes in them. Owned by a test.</summary>
internal sealed class Directories : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public NodeOptions Options(ushort id) => new()
    {
        NodeId = new NodeId(id),
        Peers = [.. Enumerable.Range(1, 3).Select(peer => new PeerNode(new NodeId((ushort)peer), new Uri($"https://node{peer}:8082")))],
        DataDirectory = PathOf(id),
        StateStore = StateStoreChoice.Files,
    };

    public string PathOf(ushort id) => Path.Combine(_directory.Path, $"node-{id}");

    /// <summary>A start of the node: what its directory is, and what it knows.</summary>
    public MemberRegistry Start(ushort id) => MemberRegistry.Open(Options(id), DataDirectoryIdentity.Open(Options(id)));

    public DataDirectoryIdentity Recorded(ushort id) => DataDirectoryIdentity.TryRead(PathOf(id))!;

    public void Wipe(ushort id) => Directory.Delete(PathOf(id), recursive: true);

    public string Rebuild(ushort id)
    {
        StringWriter output = new();
        DirectoryRebuild.Run(Options(id) with { Rebuild = true, RebuildConfirmed = true }, null, output);
        return output.ToString();
    }

    /// <summary>What the two sides of a handshake do with each other's directory.</summary>
    public static void Shake(ushort a, MemberRegistry first, ushort b, MemberRegistry second)
    {
        Kahuna.Server.Transport.PeerDirectoryAnswer toFirst = second.Meet(
            new NodeId(a), first.OwnDirectoryId, first.Rebuilt);
        Kahuna.Server.Transport.PeerDirectoryAnswer toSecond = first.Meet(
            new NodeId(b), second.OwnDirectoryId, second.Rebuilt);
        first.Heard(new NodeId(b), toFirst);
        second.Heard(new NodeId(a), toSecond);
    }

    public void Dispose() => _directory.Dispose();
}
