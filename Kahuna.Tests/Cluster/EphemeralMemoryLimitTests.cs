using System.Text;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// The options of ephemeral keys reach the nodes, what they do is in the status, and nothing of the keys reaches a
/// disk.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class EphemeralMemoryLimitTests(ITestOutputHelper output)
{
    private const int Limit = 16_000_000;
    private const int ValueBytes = 100_000;

    [Theory]
    [InlineData("refuse")]
    [InlineData("evict")]
    public async Task At_the_limit_the_policy_decides(string policy)
    {
        await using ProcessCluster cluster = new(
            output, nodes: 1, "--ephemeral-limit", "16MB", "--ephemeral-policy", policy);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call, Durability.Ephemeral);
            await using LockHandle held = await client.Locks.AcquireAsync(
                "lock", TimeSpan.FromMinutes(1), TimeSpan.FromSeconds(30));
            KahunaValue value = new byte[ValueBytes];
            int written = 0;
            KahunaException? refusal = null;
            for (; written < 400 && refusal is null; written++)
            {
                try
                {
                    await client.KeyValues.SetAsync($"key{written}", value);
                }
                catch (KahunaException failure)
                {
                    refusal = failure;
                }
            }

            NodeStatus status = (await cluster.StatusAsync(cluster.Nodes[0]))!;
            PartitionRow row = Assert.Single(status.EphemeralPartitions);
            Assert.InRange(status.EphemeralBytes, Limit / 4, 2 * Limit);
            Assert.Equal((1UL, 1), (row.Epoch, row.Locks.Held));
            Assert.InRange(row.Sessions.Count, 1, 10);
            if (policy == "refuse")
            {
                Assert.Equal(
                    (KahunaErrorCode.MemoryFull, OperationOutcome.DidNotHappen, 0),
                    (refusal?.Code, refusal?.Outcome, row.Evicted));
                Assert.InRange(written, 50, 2 * Limit / ValueBytes);
                Assert.Equal(
                    KahunaErrorCode.MemoryFull,
                    (
                        await Assert.ThrowsAsync<KahunaException>(
                            () => client.Locks.TryAcquireAsync("other", TimeSpan.FromSeconds(1)).AsTask())).Code);
                Assert.True(await held.ReleaseAsync());
            }
            else
            {
                Assert.Null(refusal);
                Assert.InRange(row.Evicted, 200, 400);
                Assert.True(await held.ExtendAsync());
            }
        });
    }

    [Fact]
    public async Task A_restored_member_has_the_keys_in_memory_and_on_no_disk()
    {
        const string Marker = "nothing of this value is ever on a disk";
        await using ProcessCluster cluster = new(output, nodes: 3, "--leaders", "spread");
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call, Durability.Ephemeral);
            for (int i = 0; i < 200; i++)
            {
                await client.KeyValues.SetAsync($"key{i}", $"{Marker} {i}");
            }

            NodeProcess leader = await cluster.LeaderAsync(ephemeral: true);
            NodeProcess follower = cluster.Nodes.First(node => node != leader);
            follower.Kill();
            await client.KeyValues.SetAsync("key0", Marker);
            follower.Start();
            await cluster.WaitReadyAsync();
            leader.Kill();
            for (int i = 1; i < 200; i++)
            {
                Assert.Equal($"{Marker} {i}", (await client.KeyValues.GetAsync($"key{i}")).Value.AsString());
            }

            Assert.Equal(Marker, (await client.KeyValues.GetAsync("key0")).Value.AsString());
            foreach (NodeProcess node in cluster.Nodes)
            {
                if (node.IsRunning)
                {
                    node.Kill();
                }

                string[] files = Directory.GetFiles(node.DataDirectory, "*", SearchOption.AllDirectories);
                Assert.NotEmpty(files);
                Assert.All(files, static file =>
                    Assert.Equal(-1, File.ReadAllBytes(file).AsSpan().IndexOf(Encoding.UTF8.GetBytes(Marker))));
            }
        });
    }
}
