using Kahuna.Client;
using Kahuna.Tests.Storage.Checkpoints;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// A disk that becomes full is told before anything fails, loses nothing, and service comes back with the room.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class FullDiskTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_within = LastNet.Span;

    [Theory]
    [InlineData("rocksdb")]
    [InlineData("files")]
    public async Task Writes_are_refused_while_the_disk_is_full_and_accepted_afterwards(string store)
    {
        // Who may not mount gets the same refusal from the limit of the log, which nothing cuts.
        using SmallDisk? disk = SmallDisk.TryMount(400L << 20);
        string[] options = disk is null ? ["--log-limit", "40MB", "--log-keep", "32MB"] : ["--log-keep", "32MB"];
        await using ProcessCluster cluster = new(output, 1, ["--state-store", store, .. options]);
        NodeProcess node = cluster.Nodes[0];
        if (disk is not null)
        {
            Directory.CreateSymbolicLink(node.DataDirectory, disk.Path);
        }

        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            await using KahunaClient patient = cluster.Connect(LastNet.Call);
            await using RecordedLoad load = new(client, writers: 4);
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            await patient.KeyValues.SetAsync("before", "1");
            KahunaException refusal;
            IDisposable? others = disk?.Fill(bytesLeft: 8 << 20);
            try
            {
                refusal = await RefusalAsync(patient);
                Assert.Equal((KahunaErrorCode.LogFull, OperationOutcome.DidNotHappen), (refusal.Code, refusal.Outcome));
                Assert.True((await patient.KeyValues.GetAsync("before")).Found, "reads go on");

                // Its state can be stored no more either, and that harms nothing.
                await Task.Delay(2_000);
                Assert.True(node.IsRunning);
            }
            finally
            {
                others?.Dispose();
            }

            if (disk is not null)
            {
                TimeSpan moment = RecordedLoad.Now;
                await load.MakeProgressAsync(moment, s_within);
                node.Kill();
                await cluster.StartAsync();
                await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            }

            await load.StopAsync();
            output.WriteLine(
                $"Checked: {(disk is null ? "full log" : "full disk")} ({store}): "
                    + $"\"{refusal.Message}\"; {await load.CheckAsync()}");
        });
    }

    /// <summary>Writes until a write is refused.</summary>
    private static async Task<KahunaException> RefusalAsync(KahunaClient client)
    {
        byte[] value = new byte[64_000];
        DateTime end = DateTime.UtcNow + s_within;
        for (int i = 0; ; i++)
        {
            Assert.True(DateTime.UtcNow < end, "no write was refused");
            try
            {
                await client.KeyValues.SetAsync($"bulk{i % 2_000}", value);
            }
            catch (KahunaException error) when (error.Code != KahunaErrorCode.Overloaded)
            {
                return error;
            }
        }
    }
}
