using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Client;

/// <summary>The client over the network against real nodes: what the tests over memory cannot show.</summary>
public sealed class NetworkTests
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Every_operation_works_against_a_real_node(bool inline)
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(cluster.Endpoints, options =>
        {
            options.Insecure = true;
            options.AllowSynchronousContinuations = inline;
        });
        KeyValueClient kv = client.KeyValues;
        Assert.Equal(
            new SetResult { Applied = true, Revision = new Revision(1) }, await Wait.ForAsync(kv.SetAsync("a", "1")));
        Assert.Equal(
            new SetResult { Revision = new Revision(1), PreviousRevision = new Revision(1), Previous = "1" },
            await Wait.ForAsync(kv.SetAsync("a", "2", new SetOptions { OnlyIfAbsent = true, ReturnPrevious = true })));
        Assert.Equal(
            new IncrementResult { Value = 42, Revision = new Revision(2) },
            await Wait.ForAsync(kv.IncrementAsync("a", 41)));
        GetResult got = await Wait.ForAsync(kv.GetAsync("a"));
        Assert.Equal(("42", 2L, null), (got.Value.AsString(), got.Revision.Value, got.RemainingTtl));
        Assert.True((await Wait.ForAsync(kv.ExtendAsync("a", TimeSpan.FromMinutes(1)))).Extended);
        Assert.InRange(
            (await Wait.ForAsync(kv.ExistsAsync("a"))).RemainingTtl!.Value,
            TimeSpan.FromSeconds(20),
            TimeSpan.FromMinutes(1));
        Assert.Equal(
            new DeleteResult
            {
                Deleted = true,
                Found = true,
                Revision = new Revision(3),
                PreviousRevision = new Revision(2),
            },
            await Wait.ForAsync(kv.DeleteAsync("a")));
        Assert.False((await Wait.ForAsync(kv.GetAsync("a"))).Found);
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(kv.SetAsync("", "v")));
        Assert.Equal(KahunaErrorCode.InvalidArgument, refused.Code);

        byte[] large = new byte[1 << 20];
        new Random(3).NextBytes(large);
        await Wait.ForAsync(kv.SetAsync("large", large));
        Assert.True((await Wait.ForAsync(kv.GetAsync("large"))).Value.Memory.Span.SequenceEqual(large));

        SetResult[] many = await Task.WhenAll(
            Enumerable.Range(0, 2000).Select(i => Wait.ForAsync(kv.SetAsync($"bucket{i % 7}/{i}", "v"))));
        Assert.All(many, result => Assert.Equal(1, result.Revision.Value));
        ClusterDescription description = await client.DescribeAsync();
        Assert.True(Assert.Single(description.Nodes).IsConnected);
    }

    [Fact]
    public async Task Disposing_a_client_ends_its_streams_also_while_they_are_idle_and_while_nodes_are_gone()
    {
        EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        KahunaClient idle = KahunaClient.Connect(cluster.Endpoints, options => options.Insecure = true);
        await Wait.ForAsync(idle.DescribeAsync());
        await idle.DisposeAsync().AsTask().WaitAsync(Wait.Longest);

        KahunaClient orphan = KahunaClient.Connect(cluster.Endpoints, options => options.Insecure = true);
        await Wait.ForAsync(orphan.KeyValues.SetAsync("k", "v"));
        await cluster.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
        await orphan.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task On_loopback_the_development_authority_is_trusted_and_elsewhere_only_who_is_named()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using (KahunaClient trusting = KahunaClient.Connect(cluster.Endpoints))
        {
            Assert.True((await Wait.ForAsync(trusting.KeyValues.SetAsync("k", "v"))).Applied);
        }

        await using (KahunaClient named = KahunaClient.Connect(
            cluster.Endpoints, options => options.TrustedCaFile = DevelopmentAuthority.AuthorityPath()))
        {
            Assert.True((await Wait.ForAsync(named.KeyValues.SetAsync("k", "v"))).Applied);
        }

        string other = Path.GetTempFileName();
        try
        {
            await File.WriteAllTextAsync(other, TestCertificate.Instance.ExportCertificatePem());
            await using KahunaClient wary = KahunaClient.Connect(cluster.Endpoints, options =>
            {
                options.TrustedCaFile = other;
                options.ConnectTimeout = options.RequestTimeout = TimeSpan.FromMinutes(5);
            });
            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => Wait.ForAsync(wary.DescribeAsync()));
            Assert.Equal((KahunaErrorCode.Untrusted, OperationOutcome.DidNotHappen), (refused.Code, refused.Outcome));
            Assert.Contains($"is not trusted by TrustedCaFile \"{other}\"", refused.Message, StringComparison.Ordinal);
            refused = await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(wary.KeyValues.SetAsync("k", "v")));
            Assert.Equal(KahunaErrorCode.Untrusted, refused.Code);

            // The authority is exchanged while the client runs.
            File.Copy(DevelopmentAuthority.AuthorityPath(), other, overwrite: true);
            await Wait.UntilAsync(async () =>
            {
                try
                {
                    return (await wary.KeyValues.SetAsync("k", "v")).Applied;
                }
                catch (KahunaException untrusted) when (untrusted.Code == KahunaErrorCode.Untrusted)
                {
                    return false;
                }
            });
        }
        finally
        {
            File.Delete(other);
        }
    }
}
