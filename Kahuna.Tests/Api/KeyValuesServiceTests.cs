using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>
/// The unary service as a client of any language sees it, against three real nodes; half of the calls go to a node that
/// must forward.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class KeyValuesServiceTests(ThreeNodes nodes)
{
    private static int s_keys;

    private readonly string _key = $"api/{Interlocked.Increment(ref s_keys)}";

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task WhatWasSetIsReadFromEveryNode(bool throughLeader)
    {
        SetKeyValueResponse set = await SetAsync(Set("v1"), throughLeader);
        Assert.True(set.Set);
        Assert.Equal(1, set.Revision);
        foreach (bool leader in new[] { true, false })
        {
            GetKeyValueResponse get = await CallAsync(
                new GetKeyValueRequest { Key = _key, Durability = Protos.Durability.Persistent },
                GetKeyValueResponse.Parser,
                "GetKeyValue",
                leader);
            Assert.True(get.Found);
            Assert.Equal("v1", get.Value.Data.ToStringUtf8());
            Assert.False(get.HasRemainingTtlMs);
        }
    }

    [Fact]
    public async Task NullAndEmptyAreDifferent()
    {
        SetKeyValueRequest request = Set("");
        request.Value = new Value();
        await SetAsync(request);
        Assert.False((await GetAsync()).Value.HasData);
        await SetAsync(Set(""));
        Assert.True((await GetAsync()).Value.HasData);
    }

    [Fact]
    public async Task ConditionsThatFailAreNormalReplies()
    {
        SetKeyValueRequest request = Set("a");
        request.Conditions = new Conditions { IfPresent = true };
        Assert.False((await SetAsync(request)).Set);
        request.Conditions = new Conditions { IfAbsent = true };
        Assert.True((await SetAsync(request)).Set);
        Assert.False((await SetAsync(request)).Set);
        request.Conditions =
            new Conditions { IfValue = new Value { Data = ByteString.CopyFromUtf8("a") }, IfRevision = 1 };
        request.ReturnPrevious = true;
        SetKeyValueResponse swapped = await SetAsync(request);
        Assert.True(swapped.Set);
        Assert.Equal((2L, 1L, "a"), (swapped.Revision, swapped.PreviousRevision, swapped.Previous.Data.ToStringUtf8()));
        SetKeyValueResponse stale = await SetAsync(request);
        Assert.False(stale.Set);
        Assert.Equal(2, stale.Revision);
    }

    [Fact]
    public async Task DeleteExtendAndIncrementDoWhatTheySay()
    {
        IncrementKeyValueRequest increment =
            new() { Key = _key, Durability = Protos.Durability.Persistent, Amount = 41 };
        Assert.Equal(41, (await CallAsync(increment, IncrementKeyValueResponse.Parser, "IncrementKeyValue")).Value);
        increment.Amount = 1;
        Assert.Equal(42, (await CallAsync(increment, IncrementKeyValueResponse.Parser, "IncrementKeyValue")).Value);
        ExtendKeyValueResponse extended = await CallAsync(
            new ExtendKeyValueRequest { Key = _key, Durability = Protos.Durability.Persistent, TtlMs = 60_000 },
            ExtendKeyValueResponse.Parser,
            "ExtendKeyValue");
        Assert.True(extended.Extended);
        Assert.InRange((await GetAsync()).RemainingTtlMs, 1, 60_000);
        ExistsKeyValueResponse exists = await CallAsync(
            new ExistsKeyValueRequest { Key = _key, Durability = Protos.Durability.Persistent },
            ExistsKeyValueResponse.Parser,
            "ExistsKeyValue");
        Assert.True(exists.Found);
        DeleteKeyValueResponse deleted = await CallAsync(
            new DeleteKeyValueRequest { Key = _key, Durability = Protos.Durability.Persistent },
            DeleteKeyValueResponse.Parser,
            "DeleteKeyValue");
        Assert.True(deleted.Deleted);
        Assert.Equal(3, deleted.Revision);
        Assert.False((await GetAsync()).Found);
        Assert.Equal(4, (await SetAsync(Set("again"))).Revision);
        GetKeyValueRequest old = new() { Key = _key, Durability = Protos.Durability.Persistent, AtRevision = 2 };
        Assert.Equal("42", (await CallAsync(old, GetKeyValueResponse.Parser, "GetKeyValue")).Value.Data.ToStringUtf8());
    }

    [Fact]
    public async Task AKeyDisappearsWhenItsTimeHasPassed()
    {
        SetKeyValueRequest request = Set("short");
        request.TtlMs = 50;
        await SetAsync(request);
        long deadline = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while ((await GetAsync()).Found)
        {
            Assert.True(Environment.TickCount64 < deadline, "the key outlived its time to live by far");
        }

        Assert.Equal(3, (await SetAsync(Set("next"))).Revision);
    }

    public static TheoryData<string, string, string> BadSets() => new()
    {
        { "empty key", "key", "" },
        { "over-long key", "1,024", new string('k', 1_025) },
        { "reserved key", "__kahuna", "__kahuna/x" },
    };

    [Theory]
    [MemberData(nameof(BadSets))]
    public async Task ABadKeyIsRefusedWithASentence(string what, string says, string key)
    {
        SetKeyValueRequest request = Set("v");
        request.Key = key;
        RpcException error = await RefusedAsync(request, StatusCode.InvalidArgument);
        Assert.True(error.Status.Detail.Contains(says, StringComparison.Ordinal), $"{what}: {error.Status.Detail}");
    }

    [Fact]
    public async Task BadFieldsAreRefusedAndNothingIsApplied()
    {
        SetKeyValueRequest unset = Set("v");
        unset.Durability = Protos.Durability.Unspecified;
        Assert.Contains(
            "durability",
            (await RefusedAsync(unset, StatusCode.InvalidArgument)).Status.Detail,
            StringComparison.Ordinal);
        SetKeyValueRequest negative = Set("v");
        negative.TtlMs = -1;
        Assert.Contains(
            "ttl",
            (await RefusedAsync(negative, StatusCode.InvalidArgument)).Status.Detail,
            StringComparison.OrdinalIgnoreCase);
        SetKeyValueRequest contradictory = Set("v");
        contradictory.Conditions = new Conditions { IfAbsent = true, IfPresent = true };
        await RefusedAsync(contradictory, StatusCode.InvalidArgument);
        SetKeyValueRequest large = Set("v");
        large.Value = new Value { Data = ByteString.CopyFrom(new byte[(1 << 20) + 1]) };
        Assert.Contains(
            "1,048,576",
            (await RefusedAsync(large, StatusCode.InvalidArgument)).Status.Detail,
            StringComparison.Ordinal);
        SetKeyValueRequest missing = Set("v");
        missing.Value = null;
        await RefusedAsync(missing, StatusCode.InvalidArgument);
        GetKeyValueRequest zero = new() { Key = _key, Durability = Protos.Durability.Persistent, AtRevision = 0 };
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(zero, GetKeyValueResponse.Parser, "GetKeyValue"));
        Assert.Equal(StatusCode.InvalidArgument, error.StatusCode);
        Assert.False((await GetAsync()).Found);
    }

    [Fact]
    public async Task AnIncrementThatCannotBeChangesNothing()
    {
        await SetAsync(Set("text"));
        IncrementKeyValueRequest increment =
            new() { Key = _key, Durability = Protos.Durability.Persistent, Amount = 1 };
        RpcException text = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(increment, IncrementKeyValueResponse.Parser, "IncrementKeyValue"));
        Assert.Equal(StatusCode.FailedPrecondition, text.StatusCode);
        await SetAsync(Set("9223372036854775807"));
        RpcException range = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(increment, IncrementKeyValueResponse.Parser, "IncrementKeyValue", throughLeader: false));
        Assert.Equal(StatusCode.OutOfRange, range.StatusCode);
        Assert.Equal("9223372036854775807", (await GetAsync()).Value.Data.ToStringUtf8());
    }

    [Fact]
    public async Task TheLargestValueGoesThroughEveryNode()
    {
        SetKeyValueRequest request = Set("");
        byte[] large = new byte[1 << 20];
        Random.Shared.NextBytes(large);
        request.Value = new Value { Data = ByteString.CopyFrom(large) };
        Assert.True((await SetAsync(request, throughLeader: false)).Set);
        Assert.Equal(large, (await GetAsync()).Value.Data.ToByteArray());
    }

    private SetKeyValueRequest Set(string value) => new()
    {
        Key = _key,
        Value = new Value { Data = ByteString.CopyFromUtf8(value) },
        Durability = Protos.Durability.Persistent,
    };

    private Task<SetKeyValueResponse> SetAsync(SetKeyValueRequest request, bool throughLeader = true) =>
        CallAsync(request, SetKeyValueResponse.Parser, "SetKeyValue", throughLeader);

    private Task<GetKeyValueResponse> GetAsync() =>
        CallAsync(
            new GetKeyValueRequest { Key = _key, Durability = Protos.Durability.Persistent },
            GetKeyValueResponse.Parser,
            "GetKeyValue");

    private async Task<RpcException> RefusedAsync(SetKeyValueRequest request, StatusCode code)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(() => SetAsync(request));
        Assert.Equal(code, error.StatusCode);
        Assert.Equal("did-not-happen", error.Trailers.GetValue("kahuna-outcome"));
        return error;
    }

    private Task<TReply> CallAsync<TRequest, TReply>(
        TRequest request, MessageParser<TReply> parser, string method, bool throughLeader = true)
        where TRequest : IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        (throughLeader ? nodes.Leader : nodes.Follower).UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}", request, parser, TestCalls.Within(TimeSpan.FromMinutes(4)));
}
