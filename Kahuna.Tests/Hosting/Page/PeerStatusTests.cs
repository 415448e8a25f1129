using System.Text.Json.Nodes;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Page;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>One node that asks another, whose answer is of any size or kind.</summary>
public sealed class PeerStatusTests
{
    private const string Path = "/openapi.json";

    [Fact]
    public async Task An_answer_larger_than_it_can_be_counts_as_none()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        using PeerStatus large = Ask(cluster, Path, bytesMax: 1 << 22);
        byte[] whole = await large.AskAsync("", CancellationToken.None).WaitAsync(Wait.Longest);
        Assert.NotNull(JsonNode.Parse(whole));
        using PeerStatus exact = Ask(cluster, Path, whole.Length);
        Assert.Equal(whole, await exact.AskAsync("", CancellationToken.None).WaitAsync(Wait.Longest));

        using PeerStatus small = Ask(cluster, Path, whole.Length - 1);
        HttpRequestException error = await Assert.ThrowsAsync<HttpRequestException>(
            () => small.AskAsync("", CancellationToken.None).WaitAsync(Wait.Longest));
        Assert.NotNull(PeerStatus.ProblemOf(error));
    }

    [Theory]
    [InlineData("/healthz", "It answers something that is not JSON.")]
    [InlineData("/nothing", "It answers 404: another version, or another cluster secret.")]
    public async Task Another_answer_is_said_in_one_line(string path, string expected)
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        using PeerStatus peer = Ask(cluster, path, bytesMax: 1 << 20);
        InvalidDataException error = await Assert.ThrowsAsync<InvalidDataException>(
            () => peer.AskAsync("", CancellationToken.None).WaitAsync(Wait.Longest));
        Assert.Equal(expected, PeerStatus.ProblemOf(error));
    }

    private static PeerStatus Ask(EmbeddedCluster cluster, string path, int bytesMax)
    {
        KahunaNode node = cluster.Nodes[0];
        return new PeerStatus(
            node.Options.Advertise,
            new NodeQuestion(path, bytesMax, TimeSpan.FromSeconds(1)),
            NodeCertificates.TrustedCaFile(node.Options),
            node.Access.Credential);
    }
}
