using Google.Protobuf;
using Grpc.Core;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api;

/// <summary>What the tests of the binding call is not served by a node.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class ServedMethodsTests(ThreeNodes nodes)
{
    [Theory]
    [InlineData("/kahuna.v1.Cluster/Echo")]
    [InlineData("/kahuna.v1.Cluster/Sink")]
    [InlineData("/kahuna.test.Streams/Echo")]
    [InlineData("/kahuna.test.Streams/Sink")]
    public async Task Methods_that_tests_use_are_unimplemented(string path)
    {
        RpcException refusal = await Assert.ThrowsAsync<RpcException>(
            () => nodes.Leader.UnaryAsync(path, new DescribeClusterRequest(), DescribeClusterResponse.Parser))
            .WaitAsync(LastNet.Span);
        Assert.Equal(StatusCode.Unimplemented, refusal.StatusCode);
    }

    [Fact]
    public async Task What_a_node_serves_is_implemented() =>
        Assert.NotEmpty(
            (await nodes.Leader.UnaryAsync(
                "/kahuna.v1.Cluster/DescribeCluster",
                new DescribeClusterRequest(),
                DescribeClusterResponse.Parser)).ToByteArray());
}
