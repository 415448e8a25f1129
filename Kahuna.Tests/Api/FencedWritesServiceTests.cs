using Google.Protobuf;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>Unary writes with a fence, through the leader and through a node that forwards.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class FencedWritesServiceTests(ThreeNodes nodes)
{
    private readonly string _name = $"locks/{Guid.NewGuid():n}";

    private UnaryLocks Leader => new(nodes.Leader);

    [Theory]
    [InlineData(1, true)]
    [InlineData(1, false)]
    [InlineData(2, false)]
    public async Task A_fenced_write_counts_while_its_token_has_the_lock(int level, bool throughLeader)
    {
        Protos.Durability durability = (Protos.Durability)level;
        AcquireLockResponse ann = await Leader.AcquireAsync(UnaryLocks.Request($"{_name}/lock", durability, "ann"));
        Fence fence = new() { Resource = $"{_name}/lock", Token = ann.Token };
        GrpcChannel channel = throughLeader ? nodes.Leader : nodes.Follower;
        SetKeyValueRequest set =
            new()
            {
                Key = $"{_name}/n",
                Durability = durability,
                Value = new Value { Data = ByteString.CopyFromUtf8("7") },
                Fence = fence,
            };
        Conditions seven = new() { IfValue = new Value { Data = ByteString.CopyFromUtf8("7") } };
        IncrementKeyValueRequest increment =
            new() { Key = $"{_name}/n", Durability = durability, Amount = 1, Fence = fence };
        ExtendKeyValueRequest extend =
            new() { Key = $"{_name}/n", Durability = durability, TtlMs = 60_000, Conditions = seven, Fence = fence };
        DeleteKeyValueRequest delete = new() { Key = $"{_name}/n", Durability = durability, Fence = fence };
        Task<SetKeyValueResponse> SetAsync() => CallAsync(channel, "SetKeyValue", set, SetKeyValueResponse.Parser);
        Assert.True((await SetAsync()).Set);
        set.Conditions = seven;
        Assert.True((await SetAsync()).Set);
        Assert.True((await CallAsync(channel, "ExtendKeyValue", extend, ExtendKeyValueResponse.Parser)).Extended);
        Assert.Equal(
            8, (await CallAsync(channel, "IncrementKeyValue", increment, IncrementKeyValueResponse.Parser)).Value);

        await Leader.ReleaseAsync($"{_name}/lock", durability, "ann", ann.Token);
        await RefusedAsync(SetAsync, StatusCode.FailedPrecondition, "which has no holder");
        AcquireLockResponse bob = await Leader.AcquireAsync(UnaryLocks.Request($"{_name}/lock", durability, "bob"));
        string words = $"token {bob.Token} does";
        await RefusedAsync(SetAsync, StatusCode.FailedPrecondition, words);
        await RefusedAsync(
            () => CallAsync(channel, "ExtendKeyValue", extend, ExtendKeyValueResponse.Parser),
            StatusCode.FailedPrecondition,
            words);
        await RefusedAsync(
            () => CallAsync(channel, "IncrementKeyValue", increment, IncrementKeyValueResponse.Parser),
            StatusCode.FailedPrecondition,
            words);
        await RefusedAsync(
            () => CallAsync(channel, "DeleteKeyValue", delete, DeleteKeyValueResponse.Parser),
            StatusCode.FailedPrecondition,
            words);
        delete.Fence = new Fence(fence) { Token = bob.Token };
        Assert.True((await CallAsync(channel, "DeleteKeyValue", delete, DeleteKeyValueResponse.Parser)).Deleted);

        foreach ((Fence bad, string says) in new[]
        {
            (new Fence { Resource = "other/lock", Token = 1 }, "another bucket"),
            (new Fence { Resource = $"{_name}/lock" }, "fence token is 0"),
            (new Fence { Token = 1 }, "fence resource is 0 bytes"),
            (new Fence { Resource = new string('n', 70_000), Token = 1 }, "fence resource is 70,000 bytes"),
        })
        {
            set.Fence = bad;
            await RefusedAsync(SetAsync, StatusCode.InvalidArgument, says);
        }
    }

    private static async Task RefusedAsync<T>(Func<Task<T>> call, StatusCode code, string words)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(call);
        Assert.Equal((code, "did-not-happen"), (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));
        Assert.Contains(words, error.Status.Detail, StringComparison.Ordinal);
    }

    private static Task<TReply> CallAsync<TRequest, TReply>(
        GrpcChannel channel, string method, TRequest request, MessageParser<TReply> parser)
        where TRequest : IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        channel.UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}", request, parser, TestCalls.Within(TimeSpan.FromMinutes(4)));
}
