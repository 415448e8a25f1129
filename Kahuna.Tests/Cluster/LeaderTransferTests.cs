using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Http.Json;
using System.Text;
using System.Text.Json;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Leaderships that an administrator moves, on nodes in this process, with clients that write meanwhile.
/// </summary>
public sealed class LeaderTransferTests(ITestOutputHelper output) : IAsyncLifetime
{
    private const int Moves = 20;
    private const int Writers = 8;

    private EmbeddedCluster? _cluster;

    public async Task InitializeAsync() => _cluster = await EmbeddedCluster.StartAsync(
        3, configure: static options => options with { Partitions = 2 }).WaitAsync(Wait.Longest);

    public async Task DisposeAsync() => await _cluster!.DisposeAsync();

    [Fact]
    public async Task No_write_is_lost_or_made_twice_while_leaderships_move()
    {
        await using KahunaClient client = ClientOf(_cluster!.Endpoints);
        using CancellationTokenSource stop = new();
        TimeSpan[] pauses = new TimeSpan[Writers];
        Task<long>[] writers =
        [
            .. Enumerable.Range(0, Writers).Select(writer => Task.Run(
                () => WriteAsync(client, writer, pauses, stop.Token))),
        ];
        // A client of one node: the others are asked by it.
        await using KahunaClient administrator = ClientOf(_cluster.Endpoints.Split(',')[0]);
        for (int i = 0; i < Moves; i++)
        {
            PartitionGroup group = i % 2 == 0 ? PartitionGroup.Persistent : PartitionGroup.Ephemeral;
            LeadershipTransfer wish = new() { Group = group, Partition = i / 2 % 2, To = 1 + (i / 4 % 3) };
            LeadershipMove move = await MoveAsync(administrator, wish);
            Assert.Equal(wish.To, move.Leader);
        }

        await stop.CancelAsync();
        long[] answered = await Task.WhenAll(writers).WaitAsync(Wait.Longest);
        for (int writer = 0; writer < Writers; writer++)
        {
            GetResult found = await client.KeyValues.GetAsync(
                KeyOf(writer), new ReadOptions { Durability = LevelOf(writer) });
            Assert.Equal(answered[writer], long.Parse(found.Value.AsString()!, CultureInfo.InvariantCulture));
        }

        output.WriteLine(FormattableString.Invariant(
            $"{answered.Sum()} writes; the longest wait of a writer: {pauses.Max().TotalMilliseconds:F0} ms"));
    }

    [Fact]
    public async Task Every_group_of_a_node_moves_and_comes_back()
    {
        await using KahunaClient client = ClientOf(_cluster!.Endpoints);
        foreach (PartitionGroup group in Enum.GetValues<PartitionGroup>())
        {
            LeadershipTransfer wish = new() { Group = group };
            LeadershipMove first = await MoveAsync(client, wish);
            Assert.True(first.Moved);
            Assert.NotEqual(first.Previous, first.Leader);
            LeadershipMove idle = await MoveAsync(client, wish with { From = first.Previous });
            Assert.Equal(new LeadershipMove(false, first.Leader, first.Leader), idle);
            LeadershipMove same = await MoveAsync(client, wish with { To = first.Leader });
            Assert.False(same.Moved);
            LeadershipMove back = await MoveAsync(client, wish with { ToPreferred = true });
            Assert.Equal(1, back.Leader);
        }
    }

    [Fact]
    public async Task Json_over_http_moves_leadership_and_says_what_is_wrong()
    {
        using HttpMessageInvoker http = RawHttp.AnyServer();
        (HttpStatusCode code, JsonElement answer) = await PostAsync(http, "0", "{}");
        Assert.Equal(HttpStatusCode.OK, code);
        Assert.True(answer.GetProperty("moved").GetBoolean());
        await RefusedAsync(http, "9", "{}", "There is no partition 9; the partitions are 0 to 1.");
        await RefusedAsync(http, "0", "{\"to\":9}", "Node 9 is not a member; the nodes are 1, 2, 3.");
        await RefusedAsync(http, "1", "{\"group\":\"LED_GROUP_META\"}", "serves no partition");
        await RefusedAsync(http, "1", "{\"to\":1,\"preferred\":true}", "contradicts");
        await RefusedAsync(http, "1", "{\"target\":1}", "target");
    }

    private static async Task<long> WriteAsync(
        KahunaClient client, int writer, TimeSpan[] pauses, CancellationToken stop)
    {
        long answered = 0;
        while (!stop.IsCancellationRequested)
        {
            long began = Stopwatch.GetTimestamp();
            IncrementResult result = await client.KeyValues.IncrementAsync(
                KeyOf(writer), options: new IncrementOptions { Durability = LevelOf(writer) });
            TimeSpan took = Stopwatch.GetElapsedTime(began);
            pauses[writer] = took > pauses[writer] ? took : pauses[writer];

            // Nobody else writes the key: a step that is missing was lost, and one too many was made twice.
            Assert.Equal(++answered, result.Value);
        }

        return answered;
    }

    /// <summary>On a machine that stands still a node may not take leadership in time; the leader goes on.</summary>
    private static async Task<LeadershipMove> MoveAsync(KahunaClient client, LeadershipTransfer wish)
    {
        using CancellationTokenSource limit = new(Wait.Longest);
        while (true)
        {
            try
            {
                return await client.Admin.TransferLeadershipAsync(wish, limit.Token);
            }
            catch (KahunaException refusal) when (
                refusal.Code is KahunaErrorCode.ChangeConflict or KahunaErrorCode.FailedPrecondition
                    or KahunaErrorCode.Unavailable)
            {
                Assert.Equal(OperationOutcome.DidNotHappen, refusal.Outcome);
                await Task.Delay(20, limit.Token);
            }
        }
    }

    private async Task RefusedAsync(HttpMessageInvoker http, string partition, string body, string words)
    {
        (HttpStatusCode code, JsonElement answer) = await PostAsync(http, partition, body);
        Assert.Equal(HttpStatusCode.BadRequest, code);
        Assert.Contains(words, answer.GetProperty("message").GetString(), StringComparison.Ordinal);
    }

    private async Task<(HttpStatusCode Code, JsonElement Answer)> PostAsync(
        HttpMessageInvoker http, string partition, string body)
    {
        using HttpRequestMessage request = new(
            HttpMethod.Post,
            new Uri(_cluster!.Nodes[2].Options.Advertise, $"/v1/admin/partitions/{partition}/leader"))
        {
            Content = new StringContent(body, Encoding.UTF8, "application/json"),
        };
        using CancellationTokenSource limit = new(Wait.Longest);
        using HttpResponseMessage response = await http.SendAsync(request, limit.Token);
        return (response.StatusCode, await response.Content.ReadFromJsonAsync<JsonElement>(limit.Token));
    }

    private static string KeyOf(int writer) => string.Create(CultureInfo.InvariantCulture, $"writer{writer}/count");

    private static Durability LevelOf(int writer) =>
        writer % 2 == 0 ? Durability.Persistent : Durability.Ephemeral;

    private static KahunaClient ClientOf(string endpoints) => KahunaClient.Connect(
        endpoints, static options => options.RequestTimeout = TimeSpan.FromMinutes(2));
}
