using Kahuna.Client;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Real nodes whose managed heap has a hard limit: what clients do not take stays below it, and when it is reached all
/// the same the process ends and says why.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class HeapLimitTests(ITestOutputHelper output)
{
    private const int Reads = 10_000;

    private static readonly TimeSpan s_patience = LastNet.Span;

    [Fact]
    public async Task Node_with_a_heap_of_384_MiB_outlives_readers_that_ask_for_10_GiB_each_and_take_nothing()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        cluster.Nodes[0].HeapBytesMax = 384 << 20;
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await client.KeyValues.SetAsync("big", new byte[1 << 20]);
            using HttpMessageInvoker connection = RawCall.Connection();
            List<RawCall> readers = [];
            for (int i = 0; i < 4; i++)
            {
                RawCall reader = await RawCall.OpenAsync(
                    connection, new Uri(cluster.Nodes[0].Url), "/kahuna.v1.Cluster/Exchange");
                readers.Add(reader);
                await AskAsync(reader);
            }

            for (int i = 0; i < 200; i++)
            {
                await client.KeyValues.SetAsync("small", "1");
                Assert.Equal("1", (await client.KeyValues.GetAsync("small")).Value.AsString());
            }

            Assert.Equal(1 << 20, (await client.KeyValues.GetAsync("big")).Value.Memory.Length);
            readers.ForEach(static reader => reader.Dispose());
            await client.KeyValues.SetAsync("small", "2");
            Assert.True(cluster.Nodes[0].IsRunning);
            Assert.Equal(0, cluster.Nodes[0].Stop());
        });
    }

    [Fact]
    public async Task Node_whose_heap_is_full_ends_with_exit_code_1_and_the_reason()
    {
        await using ProcessCluster cluster = new(output, nodes: 1, "--persistent-limit", "160MB");
        cluster.Nodes[0].HeapBytesMax = 160 << 20;
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(5));
            byte[] value = new byte[1 << 20];
            for (int i = 0; i < 1_000 && cluster.Nodes[0].IsRunning; i++)
            {
                try
                {
                    await client.KeyValues.SetAsync($"key{i}", value);
                }
                catch (KahunaException)
                {
                    // It is about to end, or has ended.
                }
            }

            cluster.Nodes[0].WaitForExit(s_patience);
            Assert.Equal(1, cluster.Nodes[0].ExitCode);
            Assert.Contains(
                "kahuna-server: the node stops: unexpected error in", cluster.Nodes[0].Log(), StringComparison.Ordinal);
            Assert.Contains("OutOfMemoryException", cluster.Nodes[0].Log(), StringComparison.Ordinal);
        });
    }

    private static async Task AskAsync(RawCall reader)
    {
        ByteBuffer frames = ByteBuffer.Rent();
        Frame.Begin(frames, FrameKind.Hello, Limits.WireVersion);
        Frame.End(frames, 0);
        await reader.WriteAsync(frames.Written.ToArray());
        frames.Length = 0;
        ByteBuffer command = ByteBuffer.Rent();
        new Command { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "big"u8 }.Write(command);
        Frame.Begin(frames, FrameKind.Requests);
        for (uint number = 0; number < Reads; number++)
        {
            BitConverter.TryWriteBytes(frames.Take(4), number);
            BitConverter.TryWriteBytes(frames.Take(4), 0);
            BitConverter.TryWriteBytes(frames.Take(4), command.Length);
            frames.Append(command.Written);
        }

        Frame.End(frames, Reads);
        await reader.WriteAsync(frames.Written.ToArray());
        command.Return();
        frames.Return();
    }
}
