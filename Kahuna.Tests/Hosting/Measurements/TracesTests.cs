using System.Diagnostics;
using System.Net;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Activities of clients and nodes, from the caller's to the stages at the leader.</summary>
public sealed class TracesTests
{
    private const string Clients = "Kahuna.Client";
    private const string Servers = "Kahuna.Server";

    [Fact]
    public async Task A_write_shows_its_stages_in_the_trace_of_its_caller()
    {
        using TraceRecorder recorder = new(Clients, Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/b", "1");
        Assert.Same(recorder.Root, Activity.Current);

        Activity sent = await recorder.NextAsync(Clients, "set");
        Activity carriedOut = await recorder.NextAsync(Servers, "set");
        Assert.Equal((ActivityKind.Client, ActivityKind.Server), (sent.Kind, carriedOut.Kind));
        Assert.Equal(recorder.Root.SpanId, sent.ParentSpanId);
        Assert.Equal(sent.SpanId, carriedOut.ParentSpanId);
        Assert.Equal(
            ["received", "proposed", "persisted", "committed", "applied", "answered"],
            carriedOut.Events.Select(static happened => happened.Name));
        Assert.Equal(
            carriedOut.Events.Select(static happened => happened.Timestamp).Order(),
            carriedOut.Events.Select(static happened => happened.Timestamp));
        Assert.Equal(
            carriedOut.Duration,
            carriedOut.Events.Last().Timestamp - carriedOut.Events.First().Timestamp);
        Assert.Equal("persistent", carriedOut.GetTagItem("kahuna.durability"));
        Assert.Equal(0, carriedOut.GetTagItem("kahuna.partition"));
        Assert.Equal(1, carriedOut.GetTagItem("kahuna.node.id"));
        Assert.Equal("applied", carriedOut.GetTagItem("kahuna.outcome"));
        Assert.Equal("ok", sent.GetTagItem("kahuna.outcome"));
        Assert.DoesNotContain(carriedOut.TagObjects, static tag => tag.Value is string text && text.Contains("a/b"));
    }

    [Fact]
    public async Task Without_a_listener_of_the_client_the_node_continues_the_trace_of_the_caller()
    {
        using TraceRecorder recorder = new(Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.GetAsync("a/b");
        Activity carriedOut = await recorder.NextAsync(Servers, "get");
        Assert.Equal(recorder.Root.SpanId, carriedOut.ParentSpanId);
        Assert.Contains("confirmed", carriedOut.Events.Select(static happened => happened.Name));
        Assert.Equal("not_found", carriedOut.GetTagItem("kahuna.outcome"));
    }

    [Fact]
    public async Task What_is_not_sampled_is_not_traced()
    {
        using TraceRecorder recorder = new(Clients, Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        Activity.Current = null;
        using (Activity other = new Activity("other").SetIdFormat(ActivityIdFormat.W3C).Start())
        {
            await client.KeyValues.SetAsync("a/other", "1");
        }

        Activity.Current = recorder.Root;
        await client.KeyValues.GetAsync("a/b");
        await recorder.NextAsync(Servers, "get");
        Assert.Equal(["get", "get"], recorder.Seen);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_operations_at_a_time_are_each_traced(bool isVolatile)
    {
        using TraceRecorder recorder = new(Clients, Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        SetOptions options = new() { Durability = isVolatile ? Durability.Ephemeral : Durability.Persistent };
        await Task.WhenAll(Enumerable.Range(0, 200).Select(i =>
            client.KeyValues.SetAsync($"a/{i}", "1", options).AsTask()));
        HashSet<ActivitySpanId> sent = [];
        HashSet<ActivitySpanId> parents = [];
        for (int i = 0; i < 200; i++)
        {
            sent.Add((await recorder.NextAsync(Clients, "set")).SpanId);
            parents.Add((await recorder.NextAsync(Servers, "set")).ParentSpanId);
        }

        Assert.Equal(200, sent.Count);
        Assert.True(sent.SetEquals(parents));
    }

    [Fact]
    public async Task A_unary_call_with_a_traceparent_is_an_activity_with_its_operation_below()
    {
        using TraceRecorder recorder = new(Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(Wait.Longest);
        foreach (KahunaNode node in cluster.Nodes)
        {
            using HttpMessageInvoker invoker = RawHttp.AnyServer();
            using HttpRequestMessage request = new(
                HttpMethod.Get, new Uri(node.Options.Advertise, "/v1/kv/a?durability=DURABILITY_PERSISTENT"));
            request.Headers.Add("traceparent", recorder.Root.Id);
            using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
            Assert.Equal(HttpStatusCode.OK, response.StatusCode);

            // Two of the nodes forward the call, over the SDK's stream, to the one that leads.
            Activity call = await recorder.NextAsync(Servers, "kahuna.v1.KeyValues/GetKeyValue");
            Activity carriedOut = await recorder.NextAsync(Servers, "get");
            Assert.Equal(recorder.Root.SpanId, call.ParentSpanId);
            while (carriedOut.GetTagItem("kahuna.outcome") is "not_leader")
            {
                Assert.Equal(call.SpanId, carriedOut.ParentSpanId);
                carriedOut = await recorder.NextAsync(Servers, "get");
            }

            Assert.Equal(call.SpanId, carriedOut.ParentSpanId);
            Assert.Equal("not_found", carriedOut.GetTagItem("kahuna.outcome"));
            Assert.Equal(200, call.GetTagItem("http.response.status_code"));
        }
    }

    [Theory]
    [InlineData("00-00000000000000000000000000000000-0000000000000000-01")]
    [InlineData("garbage")]
    [InlineData("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")]
    public async Task A_call_with_a_traceparent_that_is_no_use_is_carried_out(string header)
    {
        using TraceRecorder recorder = new(Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        using HttpMessageInvoker invoker = RawHttp.AnyServer();
        using HttpRequestMessage request = new(
            HttpMethod.Get,
            new Uri(cluster.Nodes[0].Options.Advertise, "/v1/kv/a?durability=DURABILITY_PERSISTENT"));
        request.Headers.TryAddWithoutValidation("traceparent", header);
        using HttpResponseMessage response = await invoker.SendAsync(request, CancellationToken.None);
        Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        Assert.Empty(recorder.Seen);
    }

    [Fact]
    public async Task A_listener_that_throws_harms_nothing()
    {
        using TraceRecorder recorder = new(Clients, Servers) { Throws = true };
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        for (int i = 0; i < 3; i++)
        {
            await client.KeyValues.SetAsync("a/b", "1");
        }

        recorder.Throws = false;
        Assert.Equal("1", (await client.KeyValues.GetAsync("a/b")).Value.AsString());
        await recorder.NextAsync(Servers, "get");
        Assert.Same(recorder.Root, Activity.Current);
    }

    [Fact]
    public async Task A_node_that_takes_no_traces_gets_none()
    {
        using TraceRecorder recorder = new(Clients, Servers);
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        ValueTask<SetResult> set = client.KeyValues.SetAsync("a/b", "1");
        await set.AsTask().WaitAsync(TimeSpan.FromMinutes(1));

        // Another kind of frame would end the fake node's stream.
        Assert.Equal(1, cluster[1].FramesReceived);
        await recorder.NextAsync(Clients, "set");
    }

    [Fact]
    public async Task With_metrics_off_nothing_is_traced()
    {
        using TraceRecorder recorder = new(Servers);
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1, configure: static options =>
            options with { Metrics = new MetricsOptions { IsOn = false } }).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await client.KeyValues.SetAsync("a/b", "1");
        Assert.False(cluster.Nodes[0].View.Describe().TakesTraces);
        Assert.Empty(recorder.Seen);
    }
}
