using System.Collections.Concurrent;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Sequences;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using SequenceDescription = Kahuna.Client.Sequences.SequenceDescription;

namespace Kahuna.Tests.Api;

/// <summary>Sequences through the SDK and through unary calls, against three real nodes.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class SequencesTests(ThreeNodes nodes)
{
    private readonly string _name = $"sequences/{Guid.NewGuid():n}";

    [Fact]
    public async Task Many_callers_get_every_value_once_and_in_order()
    {
        await using KahunaClient client = Connect();
        Assert.True(await client.Sequences.CreateAsync(_name));
        Assert.False(await client.Sequences.CreateAsync(_name, new SequenceDefinition { Initial = 7 }));
        ConcurrentBag<long> values = [];
        await Parallel.ForEachAsync(Enumerable.Range(0, 8), async (worker, ct) =>
        {
            long before = 0;
            for (int i = 0; i < 200; i++)
            {
                SequenceRange range = await client.Sequences.ReserveAsync(_name, (i % 3) + 1, ct: ct);
                Assert.True(range.First > before);
                before = range.Last;
                foreach (long value in range.Values)
                {
                    values.Add(value);
                }
            }
        });
        Assert.Equal(Enumerable.Range(1, values.Count).Select(i => (long)i), values.Order());
        Assert.Equal(values.Count + 1, await client.Sequences.NextAsync(_name));
        Assert.Equal(
            new SequenceDescription(_name, 1, 1, 1, long.MaxValue, false, values.Count + 1),
            await client.Sequences.GetAsync(_name));
    }

    [Fact]
    public async Task What_cannot_be_is_said_clearly()
    {
        await using KahunaClient client = Connect();
        SequenceClient sequences = client.Sequences;
        await FailsAsync(sequences.NextAsync(_name), KahunaErrorCode.SequenceNotFound, "create it first");
        Assert.Null(await sequences.GetAsync(_name));
        Assert.False(await sequences.DeleteAsync(_name));
        Assert.False(await sequences.UpdateAsync(_name, new SequenceChange { Increment = 2 }));
        await FailsAsync(
            sequences.CreateAsync(_name, new SequenceDefinition { Increment = 0 }),
            KahunaErrorCode.InvalidArgument,
            "increment is 0");
        await FailsAsync(
            sequences.CreateAsync(_name, new SequenceDefinition { Min = 5, Max = 4 }),
            KahunaErrorCode.InvalidArgument,
            "min is 5, which is above max, 4");
        await FailsAsync(
            sequences.CreateAsync(_name, new SequenceDefinition { Initial = 11, Max = 10 }),
            KahunaErrorCode.InvalidArgument,
            "initial is 11; it must be between min, 1, and max, 10");
        await FailsAsync(sequences.CreateAsync(new string('n', 1025)), KahunaErrorCode.InvalidArgument, "1,025 bytes");
        await FailsAsync(sequences.CreateAsync(""), KahunaErrorCode.InvalidArgument, "name is empty");
        await FailsAsync(sequences.CreateAsync("__kahuna/x"), KahunaErrorCode.InvalidArgument, "reserved");
        Assert.True(await sequences.CreateAsync(_name, new SequenceDefinition { Max = 3 }));
        await FailsAsync(sequences.ReserveAsync(_name, 0), KahunaErrorCode.InvalidArgument, "count is 0");
        await FailsAsync(sequences.ReserveAsync(_name, -1), KahunaErrorCode.InvalidArgument, "count is -1");
        await FailsAsync(sequences.ReserveAsync(_name, 4), KahunaErrorCode.SequenceExhausted, "only 3 values");
        await FailsAsync(
            sequences.ReserveAsync(_name, long.MaxValue), KahunaErrorCode.SequenceExhausted, "only 3 values");
        await sequences.ReserveAsync(_name, 3);
        await FailsAsync(sequences.NextAsync(_name), KahunaErrorCode.SequenceExhausted, "no value");
        await FailsAsync(
            sequences.UpdateAsync(_name, new SequenceChange { Max = 2 }), KahunaErrorCode.InvalidArgument, "is at 3");
        await FailsAsync(
            sequences.UpdateAsync(_name, new SequenceChange()), KahunaErrorCode.InvalidArgument, "nothing is changed");
        await FailsAsync(
            sequences.NextAsync(_name, new SequenceOptions { IdempotencyKey = "" }),
            KahunaErrorCode.InvalidArgument,
            "0 bytes");
        await Assert.ThrowsAsync<ArgumentException>(() =>
            sequences.NextAsync(
                _name, new SequenceOptions { IdempotencyKey = "k", Mode = SequenceMode.Fast }).AsTask());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => sequences.NextAsync(_name, new SequenceOptions { BlockSize = 1, Mode = SequenceMode.Fast }).AsTask());

        string longest = new string('n', 1024 - _name.Length) + _name;
        Assert.True(await sequences.CreateAsync(longest));
        Assert.Equal(1, await sequences.NextAsync(longest));
    }

    [Fact]
    public async Task An_idempotency_key_names_one_allocation_for_everybody()
    {
        await using KahunaClient one = Connect();
        await using KahunaClient other = Connect();
        await one.Sequences.CreateAsync(_name);
        SequenceOptions key = new() { IdempotencyKey = "order 17" };
        SequenceRange first = await one.Sequences.ReserveAsync(_name, 5, key);
        Assert.Equal(6, await other.Sequences.NextAsync(_name));
        Assert.Equal(first, await other.Sequences.ReserveAsync(_name, 5, key));
        await FailsAsync(
            other.Sequences.ReserveAsync(_name, 4, key), KahunaErrorCode.InvalidArgument, "Another command");
        foreach (bool throughLeader in new[] { true, false })
        {
            ReserveSequenceRangeResponse unary = await UnaryAsync(
                "ReserveSequenceRange",
                new ReserveSequenceRangeRequest { Name = _name, Count = 5 },
                ReserveSequenceRangeResponse.Parser,
                throughLeader,
                "order 17");
            Assert.Equal((first.First, first.Last), (unary.First, unary.Last));
        }

        Assert.True(await one.Sequences.DeleteAsync(_name));
        await one.Sequences.CreateAsync(_name, new SequenceDefinition { Initial = 50 });
        Assert.Equal(50, (await other.Sequences.ReserveAsync(_name, 5, key)).First);
    }

    [Fact]
    public async Task The_fast_mode_hands_out_blocks_and_no_value_twice()
    {
        await using KahunaClient one = Connect();
        await using KahunaClient other = Connect();
        await one.Sequences.CreateAsync(_name, new SequenceDefinition { Increment = 3 });
        SequenceOptions fast = new() { Mode = SequenceMode.Fast, BlockSize = 20 };
        ConcurrentBag<long> values = [];
        await Parallel.ForEachAsync(Enumerable.Range(0, 8), async (worker, ct) =>
        {
            for (int i = 0; i < 250; i++)
            {
                values.Add(await (worker % 2 == 0 ? one : other).Sequences.NextAsync(_name, fast, ct));
            }
        });
        Assert.Equal(2_000, values.Distinct().Count());
        Assert.All(values, value => Assert.Equal(1, value % 3));
        Assert.InRange((await one.Sequences.GetAsync(_name))!.Latest!.Value, values.Max(), values.Max() + (3 * 20 * 6));
        await FailsAsync(
            one.Sequences.NextAsync(_name + "none", fast), KahunaErrorCode.SequenceNotFound, "create it first");
    }

    [Theory]
    [InlineData(25, 1, 10)]
    [InlineData(30, 1, 10)]
    [InlineData(7, 1, 100)]
    [InlineData(3, 1, 2)]
    [InlineData(1, 1, 2)]
    [InlineData(100, -3, 8)]
    public async Task The_fast_mode_hands_out_every_value_up_to_the_bound(long max, long increment, int blockSize)
    {
        await using KahunaClient one = Connect();
        await using KahunaClient other = Connect();
        SequenceOptions fast = new() { Mode = SequenceMode.Fast, BlockSize = blockSize };
        foreach (int callers in new[] { 1, 4 })
        {
            string name = $"{_name}/{callers}";
            await one.Sequences.CreateAsync(name, new SequenceDefinition { Increment = increment, Min = 1, Max = max });
            ConcurrentBag<long> values = [];
            await Parallel.ForEachAsync(Enumerable.Range(0, callers), async (caller, ct) =>
            {
                // Each client has to reach the end by itself: what is left in the block of another one is not for it.
                SequenceClient sequences = (caller % 2 == 0 ? one : other).Sequences;
                try
                {
                    while (true)
                    {
                        values.Add(await sequences.NextAsync(name, fast, ct));
                    }
                }
                catch (KahunaException failure)
                {
                    Assert.Equal(KahunaErrorCode.SequenceExhausted, failure.Code);
                    Assert.Contains("no value", failure.Message, StringComparison.Ordinal);
                }
            });
            IEnumerable<long> all = increment > 0
                ? Values(1, max, increment)
                : Values(1 + ((max - 1) % -increment), max, -increment);
            Assert.Equal(all, values.Order());
        }

        static IEnumerable<long> Values(long first, long last, long step)
        {
            for (long value = first; value <= last; value += step)
            {
                yield return value;
            }
        }
    }

    [Fact]
    public async Task The_fast_mode_goes_round_a_cycle()
    {
        await using KahunaClient client = Connect();
        await client.Sequences.CreateAsync(_name, new SequenceDefinition { Max = 5, Cycle = true });
        SequenceOptions fast = new() { Mode = SequenceMode.Fast, BlockSize = 3 };
        for (int i = 0; i < 20; i++)
        {
            Assert.Equal((i % 5) + 1, await client.Sequences.NextAsync(_name, fast));
        }
    }

    [Fact]
    public async Task Lists_and_unary_calls_see_the_same()
    {
        await using KahunaClient client = Connect();
        for (int i = 0; i < 20; i++)
        {
            CreateSequenceRequest request =
                new() { Name = $"{_name}/{i}/x", Increment = -1, Max = i, Cycle = i % 2 == 0 };
            Assert.True(
                (await UnaryAsync("CreateSequence", request, CreateSequenceResponse.Parser, i % 2 == 0)).Created);
        }

        Assert.Equal(
            7,
            (await UnaryAsync(
                "NextSequenceValue",
                new NextSequenceValueRequest { Name = $"{_name}/7/x" },
                NextSequenceValueResponse.Parser,
                throughLeader: false)).Value);
        List<SequenceDescription> listed = [];
        await foreach (SequenceDescription sequence in client.Sequences.ListAsync(_name))
        {
            listed.Add(sequence);
        }

        Assert.Equal(
            Enumerable.Range(0, 20).Select(i => $"{_name}/{i}/x").Order(),
            listed.Select(sequence => sequence.Name).Order());
        Assert.Equal(
            new SequenceDescription($"{_name}/7/x", 7, -1, long.MinValue, 7, false, 7),
            listed.Single(sequence => sequence.Name.EndsWith("/7/x", StringComparison.Ordinal)));

        List<string> names = [];
        string token = "";
        do
        {
            ListSequencesResponse page = await UnaryAsync(
                "ListSequences",
                new ListSequencesRequest { Prefix = _name, PageToken = token },
                ListSequencesResponse.Parser);
            names.AddRange(page.Sequences.Select(sequence => sequence.Name));
            token = page.NextPageToken;
        }
        while (token.Length > 0);
        Assert.Equal(20, names.Distinct().Count());

        Assert.True(
            (await UnaryAsync(
                "UpdateSequence",
                new UpdateSequenceRequest { Name = $"{_name}/7/x", Increment = 1, Max = 9 },
                UpdateSequenceResponse.Parser)).Updated);
        GetSequenceResponse got = await UnaryAsync(
            "GetSequence", new GetSequenceRequest { Name = $"{_name}/7/x" }, GetSequenceResponse.Parser);
        Assert.Equal((1L, 9L, 7L), (got.Sequence.Increment, got.Sequence.Max, got.Sequence.Latest));
        Assert.True(
            (await UnaryAsync(
                "DeleteSequence",
                new DeleteSequenceRequest { Name = $"{_name}/7/x" },
                DeleteSequenceResponse.Parser)).Deleted);
        Assert.Null(
            (await UnaryAsync(
                "GetSequence", new GetSequenceRequest { Name = $"{_name}/7/x" }, GetSequenceResponse.Parser)).Sequence);
        await RefusedAsync(new ReserveSequenceRangeRequest { Name = $"{_name}/7/x", Count = 1 }, StatusCode.NotFound);
        await RefusedAsync(
            new ReserveSequenceRangeRequest { Name = $"{_name}/6/x", Count = 0 }, StatusCode.InvalidArgument);
        await RefusedAsync(new ReserveSequenceRangeRequest { Name = "", Count = 1 }, StatusCode.InvalidArgument);
        await UnaryAsync(
            "CreateSequence",
            new CreateSequenceRequest { Name = $"{_name}/end", Max = 2 },
            CreateSequenceResponse.Parser);
        await RefusedAsync(new ReserveSequenceRangeRequest { Name = $"{_name}/end", Count = 3 }, StatusCode.OutOfRange);
        RpcException token2 = await Assert.ThrowsAsync<RpcException>(() =>
            UnaryAsync("ListSequences", new ListSequencesRequest { PageToken = "x" }, ListSequencesResponse.Parser));
        Assert.Equal(StatusCode.InvalidArgument, token2.StatusCode);
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private static async Task FailsAsync<T>(ValueTask<T> call, KahunaErrorCode code, string words)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => call.AsTask());
        Assert.Equal(code, failure.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
    }

    private async Task RefusedAsync(ReserveSequenceRangeRequest request, StatusCode code)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => UnaryAsync("ReserveSequenceRange", request, ReserveSequenceRangeResponse.Parser));
        Assert.Equal(code, error.StatusCode);
        Assert.Equal("did-not-happen", error.Trailers.GetValue("kahuna-outcome"));
    }

    private Task<TReply> UnaryAsync<TRequest, TReply>(
        string method,
        TRequest request,
        Google.Protobuf.MessageParser<TReply> parser,
        bool throughLeader = true,
        string? key = null)
        where TRequest : Google.Protobuf.IMessage<TRequest>
        where TReply : class, Google.Protobuf.IMessage<TReply>
    {
        Metadata headers = [];
        if (key is not null)
        {
            headers.Add("x-kahuna-idempotency-key", key);
        }

        return (throughLeader ? nodes.Leader : nodes.Follower).UnaryAsync(
            $"/kahuna.v1.Sequences/{method}", request, parser, TestCalls.Within(TimeSpan.FromMinutes(4), headers));
    }
}
