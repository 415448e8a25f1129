using Google.Protobuf;
using Grpc.Core;
using Grpc.Net.Client;
using Grpc.Net.Client.Web;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>Calls of gRPC-Web, as browsers make them, at a real node.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class GrpcWebTests(ThreeNodes nodes)
{
    [Theory]
    [InlineData(GrpcWebMode.GrpcWeb, "1.1")]
    [InlineData(GrpcWebMode.GrpcWebText, "1.1")]
    [InlineData(GrpcWebMode.GrpcWeb, "2.0")]
    [InlineData(GrpcWebMode.GrpcWebText, "2.0")]
    public async Task Unary_calls_and_streams_of_replies_are_served(GrpcWebMode mode, string version)
    {
        using GrpcChannel channel = ChannelTo(mode, version);
        SetKeyValueRequest set =
            new()
            {
                Key = $"web/{mode}-{version}",
                Durability = Server.Api.Protos.Durability.Persistent,
                Value = new Value { Data = ByteString.CopyFrom(new byte[100_000]) },
            };
        Assert.True(
            (await channel.UnaryAsync("/kahuna.v1.KeyValues/SetKeyValue", set, SetKeyValueResponse.Parser)).Set);
        GetKeyValueRequest get = new() { Key = set.Key, Durability = set.Durability };
        Assert.Equal(
            set.Value,
            (await channel.UnaryAsync("/kahuna.v1.KeyValues/GetKeyValue", get, GetKeyValueResponse.Parser)).Value);
        await foreach (DescribeClusterResponse description in channel.ServerStreamingAsync(
            "/kahuna.v1.Cluster/WatchCluster", new DescribeClusterRequest(), DescribeClusterResponse.Parser))
        {
            Assert.Equal(3, description.Nodes.Count);
            break;
        }
    }

    [Theory]
    [InlineData(GrpcWebMode.GrpcWeb)]
    [InlineData(GrpcWebMode.GrpcWebText)]
    public async Task Errors_tell_their_outcome(GrpcWebMode mode)
    {
        using GrpcChannel channel = ChannelTo(mode, "1.1");
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => channel.UnaryAsync(
            "/kahuna.v1.KeyValues/GetKeyValue", new GetKeyValueRequest { Key = "a" }, GetKeyValueResponse.Parser));
        Assert.Equal(
            (StatusCode.InvalidArgument, "did-not-happen"),
            (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
    }

    private GrpcChannel ChannelTo(GrpcWebMode mode, string version)
    {
        SocketsHttpHandler sockets = new()
        {
            SslOptions = new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
        };
        GrpcWebHandler web = new(mode, sockets);
        return GrpcChannel.ForAddress(
            nodes.Cluster.Nodes[0].Options.Advertise,
            new GrpcChannelOptions { HttpHandler = web, HttpVersion = new Version(version), DisposeHttpClient = true });
    }
}
