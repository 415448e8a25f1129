using System.Text;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>
/// What a client sends for a transaction over several partitions, and what it says when something goes wrong. The
/// first key lies in the anchor's partition.
/// </summary>
public sealed class TransactionCoordinatorTests
{
    private static readonly OutcomeStatus s_applied = OutcomeStatus.Applied;

    private readonly FakeCluster _cluster = new(partitions: 2);
    private readonly List<Step> _steps = [];
    private readonly Lock _lock = new();
    private readonly string _first = PartReplies.KeyIn(0);
    private readonly string _second = PartReplies.KeyIn(1);

    /// <summary>What a step is answered with, if not as usual.</summary>
    private Func<Step, FakeReply?> _answer = static _ => null;

    /// <summary>Steps that are never answered.</summary>
    private Func<Step, bool> _isHeld = static _ => false;

    public TransactionCoordinatorTests() => _cluster[1].Answer = Answer;

    [Fact]
    public async Task All_parts_are_prepared_then_the_anchor_decides_then_the_others_follow()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        TransactionResult result = await Write(client).CommitAsync();
        Assert.Equal([true, true], result.Results.Select(static one => one.AsSet().Applied));
        await Wait.UntilAsync(() => Count(CommandKind.TransactionForget) == 1);
        Assert.Equal(
            [
                (CommandKind.TransactionPrepare, _first, 0L),
                (CommandKind.TransactionPrepare, _second, 0L),
                (CommandKind.TransactionDecide, _first, (long)TransactionDecision.Then),
                (CommandKind.TransactionFinish, _second, (long)TransactionDecision.Then),
                (CommandKind.TransactionForget, _first, 0L),
            ],
            Steps().Select(static step => (step.Kind, step.Key, step.Number)));
        Assert.Single(Steps().Select(static step => step.Id).Distinct());
        PrepareBody.TryRead(Steps()[0].Value, out PrepareBody anchor);
        Assert.Equal((PrepareFlags.Anchor, 2), (anchor.Flags, anchor.Participants));
        PrepareBody.TryRead(Steps()[1].Value, out PrepareBody other);
        Assert.Equal((PrepareFlags.None, 0), (other.Flags, other.Participants));
        Assert.Equal(_first, Encoding.UTF8.GetString(other.AnchorKey));
    }

    [Fact]
    public async Task Keys_that_are_held_are_tried_again_under_another_id_after_the_parts_are_let_go()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        bool isHeld = true;
        _answer = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _second && isHeld
            ? Refused(ref isHeld, PrepareRefusal.KeyHeld)
            : null;
        await Write(client).CommitAsync();
        Step[] before = [.. Steps().Where(step => step.Id == Steps()[0].Id)];
        Assert.Equal(
            [
                (CommandKind.TransactionPrepare, 0L),
                (CommandKind.TransactionPrepare, 0L),
                (CommandKind.TransactionDecide, (long)TransactionDecision.Abort),
            ],
            before.Take(3).Select(static step => (step.Kind, step.Number)));
        Assert.DoesNotContain(before, static step => step.Kind == CommandKind.TransactionFinish);
        Assert.Equal(2, Steps().Select(static step => step.Id).Distinct().Count());
    }

    [Fact]
    public async Task Without_a_prepared_anchor_there_is_nothing_to_decide()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        bool isHeld = true;
        _answer = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _first && isHeld
            ? Refused(ref isHeld, PrepareRefusal.KeyHeld)
            : null;
        await Write(client).CommitAsync();
        Step[] before = [.. Steps().Where(step => step.Id == Steps()[0].Id)];
        Assert.Equal(
            [(CommandKind.TransactionFinish, _second, (long)TransactionDecision.Abort)],
            before.Skip(2).Select(static step => (step.Kind, step.Key, step.Number)));
    }

    [Fact]
    public async Task Keys_that_stay_held_end_with_an_error_and_nothing_is_written()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync(
            static options => options.RequestTimeout = TimeSpan.FromMilliseconds(300));
        _answer = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _second
            ? new FakeReply(OutcomeStatus.ConditionFailed, 0, (long)PrepareRefusal.KeyHeld)
            : null;
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => Write(client).CommitAsync());
        Assert.Equal(
            (KahunaErrorCode.KeyInTransaction, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.All(
            Steps().Where(static step => step.Kind == CommandKind.TransactionDecide),
            static step => Assert.Equal((long)TransactionDecision.Abort, step.Number));
    }

    [Fact]
    public async Task A_decision_without_an_answer_is_unknown_and_can_be_asked_for()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        using CancellationTokenSource end = new();
        _isHeld = static step =>
            step.Kind == CommandKind.TransactionDecide && step.Number != (long)TransactionDecision.Abort;
        Task<TransactionResult> commit = Write(client).CommitAsync(end.Token);
        await Wait.UntilAsync(() => Count(CommandKind.TransactionDecide) == 1);
        await end.CancelAsync();
        KahunaCanceledException cut = await Assert.ThrowsAsync<KahunaCanceledException>(() => commit);
        Assert.Equal(OperationOutcome.Unknown, cut.Outcome);
        Assert.DoesNotContain(Steps(), static step => step.Kind == CommandKind.TransactionFinish);

        Assert.Equal(TransactionOutcome.NotCommitted, await client.Transactions.FindOutcomeAsync(cut.TransactionId!));
        Step asked = Steps()[^1];
        Assert.Equal(
            (CommandKind.TransactionDecide, _first, (long)TransactionDecision.Abort, Steps()[0].Id),
            (asked.Kind, asked.Key, asked.Number, asked.Id));
        _answer = static step => step.Kind == CommandKind.TransactionDecide
            ? new FakeReply(s_applied, 0, (long)TransactionDecision.Then)
            : null;
        Assert.Equal(TransactionOutcome.Committed, await client.Transactions.FindOutcomeAsync(cut.TransactionId!));
    }

    [Fact]
    public async Task A_lost_connection_while_the_decision_is_due_names_the_transaction()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync(
            static options => options.RequestTimeout = TimeSpan.FromMilliseconds(700));
        _isHeld = static step => step.Kind == CommandKind.TransactionDecide;
        KahunaException unknown = await Assert.ThrowsAsync<KahunaException>(() => Write(client).CommitAsync());
        Assert.Equal(OperationOutcome.Unknown, unknown.Outcome);
        Assert.Contains(unknown.TransactionId!, unknown.Message, StringComparison.Ordinal);
        Assert.StartsWith(Steps()[0].Id, unknown.TransactionId, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_cancellation_before_the_decision_aborts()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        using CancellationTokenSource end = new();
        _isHeld = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _second;
        Task<TransactionResult> commit = Write(client).CommitAsync(end.Token);
        await Wait.UntilAsync(() => Count(CommandKind.TransactionPrepare) == 2);
        await end.CancelAsync();
        KahunaCanceledException cut = await Assert.ThrowsAsync<KahunaCanceledException>(() => commit);
        Assert.Equal(OperationOutcome.DidNotHappen, cut.Outcome);
        await Wait.UntilAsync(() => Count(CommandKind.TransactionFinish) == 1);
        Assert.All(
            Steps().Skip(2), static step => Assert.Equal((long)TransactionDecision.Abort, step.Number));

        // The part may still arrive, so it is finished again when it has answered.
        Assert.Equal(0, Count(CommandKind.TransactionForget));
    }

    [Fact]
    public async Task One_that_others_have_aborted_is_tried_again()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        int decisions = 0;
        _answer = step => step is { Kind: CommandKind.TransactionDecide, Number: (long)TransactionDecision.Then }
            && decisions++ == 0 ? new FakeReply(s_applied, 0, (long)TransactionDecision.Abort) : null;
        await Write(client).CommitAsync();
        Assert.Equal(2, decisions);
        Assert.Equal(2, Steps().Select(static step => step.Id).Distinct().Count());
        Assert.Contains(Steps(), static step => step is
        {
            Kind: CommandKind.TransactionFinish, Number: (long)TransactionDecision.Abort
        });
    }

    [Fact]
    public async Task Results_that_are_gone_are_an_error_that_says_committed_and_reads_are_read_again()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        int finishes = 0;
        _answer = step => step.Kind == CommandKind.TransactionFinish && finishes++ == 0
            ? new FakeReply(OutcomeStatus.NotFound)
            : null;
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => Write(client).CommitAsync());
        Assert.Equal(OperationOutcome.Happened, failure.Outcome);
        Assert.Contains("is committed", failure.Message, StringComparison.Ordinal);

        finishes = 0;
        TransactionResult read = await client.Transactions.If()
            .Then(KeyOperation.Exists(_first), KeyOperation.Exists(_second))
            .CommitAsync();
        Assert.Equal((2, 2), (read.Results.Count, finishes));
    }

    [Fact]
    public async Task The_decision_is_kept_for_a_caller_that_was_told_the_name_of_the_transaction()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        _answer = static step => step.Kind == CommandKind.TransactionFinish
            ? new FakeReply(OutcomeStatus.NotFound)
            : null;
        KahunaException told = await Assert.ThrowsAsync<KahunaException>(() => Write(client).CommitAsync());
        Assert.StartsWith(Steps()[0].Id, told.TransactionId, StringComparison.Ordinal);

        _answer = static _ => null;
        await Write(client).CommitAsync();
        await Wait.UntilAsync(() => Count(CommandKind.TransactionForget) > 0);
        Step[] forgotten = [.. Steps().Where(static step => step.Kind == CommandKind.TransactionForget)];
        Assert.DoesNotContain(forgotten, step => step.Id == Steps()[0].Id);
    }

    [Fact]
    public async Task An_interactive_commit_ends_with_the_decision_and_the_rest_ends_with_the_client()
    {
        KahunaClient client = await _cluster.ConnectedAsync();
        _isHeld = static step => step.Kind == CommandKind.TransactionFinish;
        await client.Transactions.RunAsync(async transaction =>
        {
            await transaction.SetAsync(_first, "1");
            await transaction.SetAsync(_second, "2");
        });
        PrepareBody.TryRead(Steps()[1].Value, out PrepareBody part);
        Assert.Equal(PrepareFlags.OnlyIfHolds, part.Flags);
        await Wait.UntilAsync(() => Count(CommandKind.TransactionFinish) == 1);
        await client.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
        Assert.Equal(0, Count(CommandKind.TransactionForget));
    }

    [Fact]
    public async Task A_newer_map_of_slots_begins_the_transaction_anew()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        bool isStale = true;
        _answer = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _second && isStale
            ? Stale(ref isStale)
            : null;
        await Write(client).CommitAsync();
        Assert.Equal(2, Steps().Select(static step => step.Id).Distinct().Count());
    }

    [Fact]
    public async Task What_a_node_refuses_ends_the_transaction()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        _answer = step => step.Kind == CommandKind.TransactionPrepare && step.Key == _second
            ? new FakeReply(OutcomeStatus.MemoryFull, 0, 0, "the memory is full"u8.ToArray())
            : null;
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => Write(client).CommitAsync());
        Assert.Equal((KahunaErrorCode.MemoryFull, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Equal("The memory is full; nothing was written.", failure.Message, ignoreCase: true);
        await Wait.UntilAsync(() => Count(CommandKind.TransactionForget) == 1);
    }

    [Fact]
    public async Task Atomic_reads_are_of_one_moment_when_the_second_reading_finds_the_same()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        long revision = 4;
        int readings = 0;
        _answer = step => step.Kind == CommandKind.GetMany
            ? Read(step.Key == _second && readings++ < 2 ? ++revision : revision)
            : null;
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(
            [_first, _second], new BatchOptions { Atomic = true });
        Assert.Equal(2, read.Items.Count);
        Assert.Equal(4, readings);
        Assert.Equal(0, Count(CommandKind.TransactionPrepare));
    }

    [Fact]
    public async Task Atomic_reads_of_unknown_keys_or_of_keys_that_never_rest_are_a_transaction()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        BatchOptions atomic = new() { Atomic = true };
        _answer = static step => step.Kind == CommandKind.GetMany ? Read(0) : null;
        await client.KeyValues.GetManyAsync([_first, _second, _first], atomic);
        Assert.Equal((2, 2), (Count(CommandKind.GetMany), Count(CommandKind.TransactionPrepare)));
        long revision = 0;
        _answer = step => step.Kind == CommandKind.GetMany ? Read(++revision) : null;
        await client.KeyValues.GetManyAsync([_first, _second], atomic);
        Assert.Equal((2 + (3 * 4) + 2, 4), (Count(CommandKind.GetMany), Count(CommandKind.TransactionPrepare)));
    }

    private ConditionalTransaction Write(KahunaClient client) =>
        client.Transactions.If().Then(KeyOperation.Set(_first, "1"), KeyOperation.Set(_second, "2"));

    private FakeReply? Answer(FakeRequest request)
    {
        Step step = new(request);
        lock (_lock)
        {
            // Parts are sent in their order, and arrive in any.
            _steps.Add(step);
            return _isHeld(step) ? null : _answer(step) ?? PartReplies.Usual(step.Kind, step.Number);
        }
    }

    private static FakeReply Refused(ref bool isHeld, PrepareRefusal why)
    {
        isHeld = false;
        return new FakeReply(OutcomeStatus.ConditionFailed, 0, (long)why);
    }

    private static FakeReply Stale(ref bool isStale)
    {
        isStale = false;
        return new FakeReply(
            OutcomeStatus.InvalidArgument, 0, 0, "\"a\" and \"b\" lie in different partitions"u8.ToArray());
    }

    private static FakeReply Read(long revision) => new(
        OutcomeStatus.Found,
        Value: PartReplies.Outcomes(
            new Outcome(revision == 0 ? OutcomeStatus.NotFound : OutcomeStatus.Found, revision, -1)));

    private Step[] Steps()
    {
        lock (_lock)
        {
            return [.. _steps];
        }
    }

    private int Count(CommandKind kind) => Steps().Count(step => step.Kind == kind);

    /// <summary>One command that a client sent. Immutable.</summary>
    private sealed class Step
    {
        public Step(FakeRequest request)
        {
            Kind = request.Kind;
            Key = request.Key;
            Value = request.Value;
            Command.TryRead(request.Bytes, out Command command);
            Number = command.Number;
            Id = request.Value.Length >= TransactionId.Bytes ? TransactionId.Read(request.Value).ToString() : "";
        }

        public CommandKind Kind { get; }

        public string Key { get; }

        public byte[] Value { get; }

        public long Number { get; }

        public string Id { get; }
    }
}
