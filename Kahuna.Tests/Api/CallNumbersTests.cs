using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>
/// Unary calls that are made twice and happen once, against three real nodes; the second attempt often goes to another
/// node.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class CallNumbersTests(ThreeNodes nodes)
{
    private readonly string _key = $"numbers/{Guid.NewGuid():n}";
    private readonly string _session = Random.Shared.NextInt64(1, long.MaxValue)
        .ToString(System.Globalization.CultureInfo.InvariantCulture);

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task A_numbered_call_happens_once_whichever_node_is_asked(int durability)
    {
        for (int number = 1; number <= 5; number++)
        {
            foreach (bool throughLeader in new[] { true, false, true })
            {
                Assert.Equal(
                    number,
                    await IncrementAsync(
                        throughLeader,
                        (Protos.Durability)durability,
                        ("x-kahuna-session", _session),
                        ("x-kahuna-sequence", $"{number}")));
            }
        }
    }

    [Fact]
    public async Task A_call_with_an_idempotency_key_happens_once()
    {
        string key = $"order {_key}";
        Assert.Equal(1, await IncrementAsync(true, Protos.Durability.Persistent, ("x-kahuna-idempotency-key", key)));
        Assert.Equal(1, await IncrementAsync(false, Protos.Durability.Persistent, ("x-kahuna-idempotency-key", key)));
        Assert.Equal(
            2, await IncrementAsync(false, Protos.Durability.Persistent, ("x-kahuna-idempotency-key", key + "2")));
        Assert.Equal(3, await IncrementAsync(true, Protos.Durability.Persistent));
    }

    [Fact]
    public async Task The_first_outcome_is_the_answer_with_its_previous_value()
    {
        SetKeyValueRequest request =
            new() { Key = _key, Durability = Protos.Durability.Persistent, ReturnPrevious = true };
        (string, string)[] first = [("x-kahuna-session", _session), ("x-kahuna-sequence", "1")];
        (string, string)[] second = [("x-kahuna-session", _session), ("x-kahuna-sequence", "2")];
        request.Value = new Value { Data = ByteString.CopyFromUtf8("a") };
        SetKeyValueResponse a = await SetAsync(request, first);
        request.Value = new Value { Data = ByteString.CopyFromUtf8("b") };
        SetKeyValueResponse b = await SetAsync(request, second);
        Assert.Equal("a", b.Previous.Data.ToStringUtf8());
        Assert.Equal(b, await SetAsync(request, second));
        request.Value = new Value { Data = ByteString.CopyFromUtf8("a") };
        Assert.Equal(a, await SetAsync(request, first));
        Assert.Null(a.Previous);
    }

    [Fact]
    public async Task What_is_confirmed_is_refused_and_its_end_counts_as_unknown()
    {
        await IncrementAsync(
            true, Protos.Durability.Persistent, ("x-kahuna-session", _session), ("x-kahuna-sequence", "1"));
        await IncrementAsync(
            true,
            Protos.Durability.Persistent,
            ("x-kahuna-session", _session),
            ("x-kahuna-sequence", "2"),
            ("x-kahuna-confirmed", "1"));
        RpcException error = await Assert.ThrowsAsync<RpcException>(() => IncrementAsync(
            false, Protos.Durability.Persistent, ("x-kahuna-session", _session), ("x-kahuna-sequence", "1")));
        Assert.Equal(StatusCode.FailedPrecondition, error.StatusCode);
        Assert.Equal("unknown", error.Trailers.GetValue("kahuna-outcome"));
        await RefusedAsync(
            $"x-kahuna-sequence is 5000; it must be 1 to 4,096 above x-kahuna-confirmed, which is 2.",
            ("x-kahuna-session", _session),
            ("x-kahuna-sequence", "5000"),
            ("x-kahuna-confirmed", "2"));
        Assert.Equal(
            3,
            await IncrementAsync(
                true, Protos.Durability.Persistent, ("x-kahuna-session", _session), ("x-kahuna-sequence", "5000")));
    }

    [Fact]
    public async Task Bad_numbers_are_refused()
    {
        await RefusedAsync("x-kahuna-sequence is missing", ("x-kahuna-session", "5"));
        await RefusedAsync("x-kahuna-session is missing", ("x-kahuna-sequence", "5"));
        await RefusedAsync("contradict each other", ("x-kahuna-session", "5"), ("x-kahuna-idempotency-key", "a"));
        await RefusedAsync(
            "the idempotency key is 257 bytes; it must have 1 to 256.",
            ("x-kahuna-idempotency-key", new string('k', 257)));
        await RefusedAsync("the idempotency key is 0 bytes", ("x-kahuna-idempotency-key", ""));
        foreach (string number in new[] { "0", "-1", "1.5", "x", "", "99999999999999999999" })
        {
            await RefusedAsync(
                "it must be a whole number from 1", ("x-kahuna-session", _session), ("x-kahuna-sequence", number));
            await RefusedAsync(
                "it must be a whole number from 1", ("x-kahuna-session", number), ("x-kahuna-sequence", "1"));
        }

        await IncrementAsync(true, Protos.Durability.Persistent, ("x-kahuna-idempotency-key", _key));
        IncrementKeyValueRequest other = new() { Key = _key, Durability = Protos.Durability.Persistent, Amount = 2 };
        RpcException reused = await Assert.ThrowsAsync<RpcException>(() => CallAsync(
            other, IncrementKeyValueResponse.Parser, "IncrementKeyValue", true, [("x-kahuna-idempotency-key", _key)]));
        Assert.Equal(StatusCode.InvalidArgument, reused.StatusCode);
        Assert.Equal("did-not-happen", reused.Trailers.GetValue("kahuna-outcome"));
    }

    private async Task RefusedAsync(string words, params (string, string)[] headers)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => IncrementAsync(true, Protos.Durability.Persistent, headers));
        Assert.Equal(StatusCode.InvalidArgument, error.StatusCode);
        Assert.Contains(words, error.Status.Detail, StringComparison.Ordinal);
        Assert.Equal("did-not-happen", error.Trailers.GetValue("kahuna-outcome"));
    }

    private async Task<long> IncrementAsync(
        bool throughLeader, Protos.Durability durability, params (string, string)[] headers)
    {
        IncrementKeyValueRequest request = new() { Key = _key, Durability = durability, Amount = 1 };
        return (await CallAsync(
            request, IncrementKeyValueResponse.Parser, "IncrementKeyValue", throughLeader, headers)).Value;
    }

    private Task<SetKeyValueResponse> SetAsync(SetKeyValueRequest request, (string, string)[] headers) =>
        CallAsync(request, SetKeyValueResponse.Parser, "SetKeyValue", throughLeader: false, headers);

    private Task<TReply> CallAsync<TRequest, TReply>(
        TRequest request, MessageParser<TReply> parser, string method, bool throughLeader, (string, string)[] headers)
        where TRequest : IMessage<TRequest>
        where TReply : class, IMessage<TReply>
    {
        Metadata metadata = [];
        foreach ((string name, string value) in headers)
        {
            metadata.Add(name, value);
        }

        CallOptions options = TestCalls.Within(TimeSpan.FromMinutes(4), metadata);
        return (throughLeader ? nodes.Leader : nodes.Follower).UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}", request, parser, options);
    }
}
