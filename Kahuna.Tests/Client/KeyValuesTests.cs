using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

public sealed class KeyValuesTests
{
    [Fact]
    public async Task Each_operation_sends_its_command_and_reads_its_outcome()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        FakeNode node = cluster[1];

        node.Answer = static _ => new FakeReply(OutcomeStatus.Applied, 5, 4, "old"u8.ToArray());
        SetResult set = await Wait.ForAsync(client.KeyValues.SetAsync(
            "a/b", "v", new SetOptions { OnlyIfPresent = true, Ttl = TimeSpan.FromTicks(1), ReturnPrevious = true }));
        Assert.Equal(
            new SetResult
            {
                Applied = true,
                Revision = new Revision(5),
                Previous = "old",
                PreviousRevision = new Revision(4),
            },
            set);
        DeleteResult delete = await Wait.ForAsync(client.KeyValues.DeleteAsync(
            "a/b", new DeleteOptions { OnlyIfRevision = new Revision(5), WithoutHistory = true }));
        Assert.Equal(
            new DeleteResult
            {
                Deleted = true,
                Found = true,
                Revision = new Revision(5),
                Previous = "old",
                PreviousRevision = new Revision(4),
            },
            delete);

        node.Answer = static _ => new FakeReply(OutcomeStatus.Found, 7, 1500, "v"u8.ToArray());
        GetResult get = await Wait.ForAsync(
            client.KeyValues.GetAsync("a/b", new ReadOptions { AtRevision = new Revision(7) }));
        Assert.Equal(
            new GetResult
            {
                Found = true,
                Value = "v",
                Revision = new Revision(7),
                RemainingTtl = TimeSpan.FromMilliseconds(1500),
            },
            get);
        ExistsResult exists = await Wait.ForAsync(client.KeyValues.ExistsAsync("a/b"));
        Assert.Equal(
            new ExistsResult
            {
                Found = true,
                Revision = new Revision(7),
                RemainingTtl = TimeSpan.FromMilliseconds(1500),
            },
            exists);

        node.Answer = static _ => new FakeReply(OutcomeStatus.Applied, 8, -3);
        Assert.Equal(
            new ExtendResult { Extended = true, Found = true, Revision = new Revision(8) },
            await Wait.ForAsync(client.KeyValues.ExtendAsync("a/b", TimeSpan.Zero)));
        Assert.Equal(
            new IncrementResult { Value = -3, Revision = new Revision(8) },
            await Wait.ForAsync(client.KeyValues.IncrementAsync("n", -4)));

        FakeRequest[] sent = [.. node.Received];
        Assert.Equal(
            [
                CommandKind.Set,
                CommandKind.Delete,
                CommandKind.Get,
                CommandKind.Exists,
                CommandKind.Extend,
                CommandKind.Increment,
            ],
            sent.Select(request => request.Kind));
        Assert.Equal(CommandFlags.IfPresent | CommandFlags.Ttl | CommandFlags.ReturnPrevious, sent[0].Options);
        Assert.Equal(1, Read(sent[0]).TtlMs);
        Assert.Equal(CommandFlags.IfRevision | CommandFlags.WithoutHistory, sent[1].Options);
        Assert.Equal(7, Read(sent[2]).AtRevision);
        Assert.Equal(0, Read(sent[4]).TtlMs);
        Assert.Equal(-4, Read(sent[5]).Number);
        Assert.All(sent, request => Assert.InRange(request.WaitMs, 1u, 300_000u));
    }

    [Fact]
    public async Task Null_and_empty_values_are_told_apart()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        cluster[1].Answer = static _ => FakeReply.Applied();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", (string?)null));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", (byte[]?)null));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", KahunaValue.Null));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", ""));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", ReadOnlyMemory<byte>.Empty));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "x", new SetOptions { OnlyIfValue = KahunaValue.Null }));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "x", new SetOptions { OnlyIfValue = KahunaValue.Empty }));
        Assert.Equal(
            [
                CommandFlags.NullValue,
                CommandFlags.NullValue,
                CommandFlags.NullValue,
                CommandFlags.None,
                CommandFlags.None,
                CommandFlags.IfValue | CommandFlags.NullCompared, CommandFlags.IfValue,
            ],
            cluster[1].Received.Select(request => request.Options));

        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.Found, 1, -1, []);
        GetResult empty = await Wait.ForAsync(client.KeyValues.GetAsync("k"));
        Assert.False(empty.Value.IsNull);
        Assert.Equal("", empty.Value.AsString());
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.NotFound, 3);
        GetResult absent = await Wait.ForAsync(client.KeyValues.GetAsync("k"));
        Assert.Equal(new GetResult { Revision = new Revision(3) }, absent);
        Assert.True(absent.Value.IsNull);
    }

    [Fact]
    public async Task A_failed_condition_and_a_missing_key_are_results()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.ConditionFailed, 4, 4);
        Assert.Equal(
            new SetResult { Revision = new Revision(4), PreviousRevision = new Revision(4) },
            await Wait.ForAsync(client.KeyValues.SetAsync("k", "v")));
        Assert.Equal(
            new DeleteResult { Found = true, Revision = new Revision(4), PreviousRevision = new Revision(4) },
            await Wait.ForAsync(client.KeyValues.DeleteAsync("k")));
        Assert.Equal(
            new ExtendResult { Found = true, Revision = new Revision(4) },
            await Wait.ForAsync(client.KeyValues.ExtendAsync("k", TimeSpan.FromSeconds(1))));
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.NotFound);
        Assert.Equal(default, await Wait.ForAsync(client.KeyValues.DeleteAsync("k")));
        Assert.Equal(default, await Wait.ForAsync(client.KeyValues.ExtendAsync("k", TimeSpan.FromSeconds(1))));
    }

    [Theory]
    [InlineData(64, KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen)]
    [InlineData(65, KahunaErrorCode.Unimplemented, OperationOutcome.DidNotHappen)]
    [InlineData(68, KahunaErrorCode.LogFull, OperationOutcome.DidNotHappen)]
    [InlineData(73, KahunaErrorCode.MemoryFull, OperationOutcome.DidNotHappen)]
    [InlineData(75, KahunaErrorCode.OutcomeUnknown, OperationOutcome.Unknown)]
    [InlineData(76, KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen)]
    [InlineData(77, KahunaErrorCode.SessionsFull, OperationOutcome.DidNotHappen)]
    [InlineData(78, KahunaErrorCode.LockFull, OperationOutcome.DidNotHappen)]
    [InlineData(72, KahunaErrorCode.Internal, OperationOutcome.Unknown)]
    [InlineData(200, KahunaErrorCode.Protocol, OperationOutcome.Unknown)]
    [InlineData(60, KahunaErrorCode.Protocol, OperationOutcome.Unknown)]
    public async Task A_refusal_that_is_not_worth_repeating_ends_the_operation_at_once(
        int status, KahunaErrorCode code, OperationOutcome outcome)
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        cluster[1].Answer = _ => new FakeReply(
            (OutcomeStatus)status, Value: "ttl_ms is -1; it must be 1 or more"u8.ToArray());
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => Wait.ForAsync(client.KeyValues.SetAsync("k", "v")));
        Assert.Equal(code, failure.Code);
        Assert.Equal(outcome, failure.Outcome);
        Assert.Equal(outcome == OperationOutcome.DidNotHappen, failure.IsSafeToRetry);
        if (status >= 64)
        {
            Assert.Equal("Ttl is -1; it must be 1 or more.", failure.Message);
        }

        KahunaException read = await Assert.ThrowsAsync<KahunaException>(
            () => Wait.ForAsync(client.KeyValues.GetAsync("k")));
        Assert.Equal(code, read.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, read.Outcome);
        Assert.Equal(2, cluster[1].Received.Count);
    }

    [Fact]
    public async Task An_increment_of_text_is_an_exception_or_with_Try_a_result()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        foreach ((OutcomeStatus status, KahunaErrorCode code, IncrementStatus attempt) in new[]
        {
            (OutcomeStatus.NotAnInteger, KahunaErrorCode.NotAnInteger, IncrementStatus.NotAnInteger),
            (OutcomeStatus.Overflow, KahunaErrorCode.Overflow, IncrementStatus.Overflow),
        })
        {
            cluster[1].Answer = _ => new FakeReply(status, 3, 9);
            KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
                () => Wait.ForAsync(client.KeyValues.IncrementAsync("k")));
            Assert.Equal(code, failure.Code);
            Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
            Assert.Contains("\"k\"", failure.Message, StringComparison.Ordinal);
            Assert.Equal(
                new TryIncrementResult { Status = attempt },
                await Wait.ForAsync(client.KeyValues.TryIncrementAsync("k")));
        }

        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.Applied, 4, 10);
        TryIncrementResult applied = await Wait.ForAsync(client.KeyValues.TryIncrementAsync("k"));
        Assert.Equal(
            new TryIncrementResult { Status = IncrementStatus.Applied, Value = 10, Revision = new Revision(4) },
            applied);
        Assert.True(applied.Applied);
    }

    [Fact]
    public async Task A_compacted_revision_is_an_exception()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.RevisionCompacted, 30);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => Wait.ForAsync(client.KeyValues.GetAsync("k", new ReadOptions { AtRevision = new Revision(1) })));
        Assert.Equal(KahunaErrorCode.RevisionCompacted, failure.Code);
        Assert.Contains("30", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task What_cannot_be_encoded_is_refused_before_it_is_sent()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        await RefusedAsync(
            client.KeyValues.SetAsync(new string('ä', 513), "v"), "key is 1,026 bytes; the limit is 1,024.");
        await RefusedAsync(
            client.KeyValues.SetAsync("\ud800", "v"), "key has an unpaired surrogate and cannot be written as UTF-8.");
        await RefusedAsync(
            client.KeyValues.SetAsync("k", "\udc00"),
            "value has an unpaired surrogate and cannot be written as UTF-8.");
        await RefusedAsync(
            client.KeyValues.SetAsync("k", new byte[(16 << 20) + 1]),
            "value is 16,777,217 bytes; no server accepts more than 16,777,216.");
        await RefusedAsync(
            client.KeyValues.SetAsync("k", new string('x', (16 << 20) + 1)),
            "value is 16,777,217 bytes; no server accepts more than 16,777,216.");
        await RefusedAsync(
            client.KeyValues.DeleteAsync("k", new DeleteOptions { OnlyIfValue = new byte[(16 << 20) + 1] }),
            "OnlyIfValue is 16,777,217 bytes; no server accepts more than 16,777,216.");
        Assert.Empty(cluster[1].Received);
        Assert.Throws<ArgumentNullException>(() => { _ = client.KeyValues.GetAsync(null!); });

        cluster[1].Answer = static _ => FakeReply.Applied();
        await Wait.ForAsync(client.KeyValues.SetAsync(new string('ä', 512), "v"));
        Assert.Equal(new string('ä', 512), Assert.Single(cluster[1].Received).Key);
    }

    [Fact]
    public async Task Options_choose_the_durability_of_a_call_and_of_the_client()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client(static options => options.Durability = Durability.Ephemeral);
        cluster[1].Answer = static _ => FakeReply.Applied();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v", new SetOptions { Durability = Durability.Persistent }));
        Assert.Equal(
            [Durability.Ephemeral, Durability.Persistent],
            cluster[1].Received.Select(static request => Read(request).Durability));
    }

    [Fact]
    public async Task A_large_value_goes_both_ways()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = cluster.Client();
        byte[] value = new byte[3 << 20];
        new Random(1).NextBytes(value);
        cluster[1].Answer = static request => request.Kind == CommandKind.Set
            ? FakeReply.Applied()
            : new FakeReply(OutcomeStatus.Found, 1, -1, request.Connection.Node.Received.First().Value);
        await Wait.ForAsync(client.KeyValues.SetAsync("k", value));
        GetResult[] read = await Task.WhenAll(
            Enumerable.Range(0, 4).Select(_ => Wait.ForAsync(client.KeyValues.GetAsync("k"))));
        Assert.All(read, result => Assert.True(result.Value.Memory.Span.SequenceEqual(value)));
    }

    private static Kept Read(FakeRequest request)
    {
        Assert.True(Command.TryRead(request.Bytes, out Command command));
        return new Kept(command.Durability, command.TtlMs, command.AtRevision, command.Number);
    }

    private static async Task RefusedAsync<T>(ValueTask<T> task, string message)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(task));
        Assert.Equal(KahunaErrorCode.InvalidArgument, failure.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
        Assert.Equal(message, failure.Message);
    }

    private sealed record Kept(Durability Durability, long TtlMs, long AtRevision, long Number);
}
