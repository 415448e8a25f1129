using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// The cluster that is attacked: where its nodes are, and which of them leads. Immutable; any thread.
/// </summary>
internal sealed class AttackTarget(IReadOnlyList<Uri> nodes)
{
    public IReadOnlyList<Uri> Nodes => nodes;

    /// <summary>The node that leads the partition of a key; the first node while nobody says so.</summary>
    public async Task<Uri> LeaderAsync(ReadOnlyMemory<byte> key)
    {
        await using KahunaClient client = KahunaClient.Connect(
            string.Join(',', nodes), static options => options.Insecure = true);
        ClusterDescription description = await client.DescribeAsync();
        int leader = description.Partitions[InitialPartition.Of(key.Span, description.Partitions.Count)].LeaderNodeId
            ?? 1;
        return nodes[Math.Clamp(leader - 1, 0, nodes.Count - 1)];
    }

    /// <summary>Opens a stream of frames to a node, past all limits of the SDK.</summary>
    public static async Task<RawStream> OpenAsync(Uri node)
    {
        GrpcFrameChannel channel = new(new KahunaClientOptions { Insecure = true }.ToSettings());
        RawStream stream = new(channel, await channel.OpenAsync(node, authorization: null, CancellationToken.None));
        await stream.GreetAsync();
        return stream;
    }
}
