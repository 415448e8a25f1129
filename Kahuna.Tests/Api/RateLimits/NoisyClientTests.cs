using System.Globalization;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Cluster.Attack;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api.RateLimits;

/// <summary>One connection that begins sessions without end, against three real nodes: others begin theirs.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class NoisyClientTests(ThreeNodes nodes)
{
    [Fact]
    public async Task One_connection_that_begins_sessions_without_end_is_refused_and_new_clients_write()
    {
        const int Sessions = 20_000;
        Uri leader = nodes.Cluster.Nodes[nodes.LeaderIndex].Options.Advertise;
        await using RawStream noisy = await AttackTarget.OpenAsync(leader);
        await SessionsAttacker.BeginAsync(noisy, Random.Shared, Sessions, CancellationToken.None)
            .WaitAsync(LastNet.Span);

        // Ten a second go through: to let half of them in, the attack would have to take a quarter of an hour.
        Assert.Equal(Sessions, noisy.Replies);
        Assert.InRange(noisy.Refused, Sessions / 2, Sessions - 256);

        await using KahunaClient client = PatientClient.Connect(
            nodes.Cluster.Endpoints, static options => options.Insecure = true);
        for (int i = 0; i < 10; i++)
        {
            await client.KeyValues.SetAsync($"noisy/{i}", "value");
        }
    }

    [Fact]
    public async Task What_a_node_forwards_for_many_clients_is_not_counted_as_one_client()
    {
        // All of it comes to the leader over one connection of the follower, more than one connection may begin.
        const int Clients = 20;
        const int Sessions = 200;
        RpcException?[][] refusals = await Task.WhenAll(Enumerable.Range(0, Clients).Select(async _ =>
        {
            using GrpcChannel channel = nodes.OpenFollower();
            return await Task.WhenAll(Enumerable.Range(0, Sessions).Select(_ => TryAsync(channel)));
        }));
        Assert.All(refusals.SelectMany(static one => one), static refusal => Assert.Null(refusal?.Message));
    }

    /// <summary>A write that begins a session; null when it is carried out.</summary>
    private static async Task<RpcException?> TryAsync(GrpcChannel channel)
    {
        string session = Random.Shared.NextInt64(1, long.MaxValue).ToString(CultureInfo.InvariantCulture);
        SetKeyValueRequest request =
            new() { Key = "noisy/unary", Durability = Protos.Durability.Persistent, Value = new Value() };
        Metadata headers = new() { { "x-kahuna-session", session }, { "x-kahuna-sequence", "1" } };
        try
        {
            await channel.UnaryAsync(
                "/kahuna.v1.KeyValues/SetKeyValue", request, SetKeyValueResponse.Parser, new CallOptions(headers));
            return null;
        }
        catch (RpcException refusal)
        {
            return refusal;
        }
    }
}
