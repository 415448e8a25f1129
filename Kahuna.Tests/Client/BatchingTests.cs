using Kahuna.Client;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Client;

public sealed class BatchingTests
{
    [Fact]
    public async Task What_gathers_during_a_write_is_the_next_frame()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        FakeConnection connection = cluster[1].Connection;
        connection.StopTaking();
        Task<SetResult> first = Wait.ForAsync(client.KeyValues.SetAsync("first", "v"));
        await Wait.UntilAsync(() => connection.WritesBegun == 2);
        Task<SetResult>[] others =
            [.. Enumerable.Range(0, 100).Select(i => Wait.ForAsync(client.KeyValues.SetAsync($"{i}", "v")))];
        connection.TakeAgain();
        await Task.WhenAll(others);
        await first;
        Assert.Equal(2, cluster[1].FramesReceived);
        Assert.Equal([1, 100], cluster[1].Received.Select(request => request.FrameCount).Distinct());
    }

    [Fact]
    public async Task Callers_that_are_woken_together_fill_one_frame()
    {
        const int Workers = 64;
        const int Rounds = 20;
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(
            options => options.AllowSynchronousContinuations = true);
        cluster[1].Connection.StopTaking();
        Task[] workers = [.. Enumerable.Range(0, Workers).Select(async worker =>
        {
            for (int i = 0; i < Rounds; i++)
            {
                await client.KeyValues.SetAsync($"{worker}", "v").ConfigureAwait(false);
            }
        })];
        cluster[1].Connection.TakeAgain();
        for (int round = 0; round < Rounds; round++)
        {
            FakeRequest[] requests = [.. Enumerable.Range(0, Workers).Select(_ => cluster[1].Next())];
            if (round > 0)
            {
                Assert.All(requests, request => Assert.Equal(Workers, request.FrameCount));
            }

            cluster[1].Connection.Reply([.. requests.Select(request => (request, FakeReply.Applied()))]);
        }

        await Task.WhenAll(workers).WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_frame_closes_at_its_target_size()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.StopTaking();
        byte[] value = new byte[32 * 1024];
        Task<SetResult>[] sets =
            [.. Enumerable.Range(0, 100).Select(_ => Wait.ForAsync(client.KeyValues.SetAsync("k", value)))];
        cluster[1].Connection.TakeAgain();
        await Task.WhenAll(sets);
        Assert.All(cluster[1].Received, request => Assert.InRange(request.FrameCount, 1, 8));
    }
}
