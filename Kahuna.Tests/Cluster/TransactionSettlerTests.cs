using System.Text;
using Kahuna.Server.Cluster;
using Kahuna.Server.State.KeyValues;
using Kahuna.Tests.Client;
using Kahuna.Tests.Transport;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Cluster;

/// <summary>Transactions that their coordinators have left are ended by the nodes.</summary>
public sealed class TransactionSettlerTests
{
    private static readonly TransactionId s_id = new(1, 2);

    private readonly ManualTime _time = new();
    private readonly LogRecorder _log = new();
    private readonly CancellationTokenSource _stop = new();
    private readonly List<string> _calls = [];

    /// <summary>The answers that tests hold back.</summary>
    private readonly Queue<TaskCompletionSource<byte[]>> _held = new();

    private Func<string, byte[]?> _answer = static call =>
        Reply(OutcomeStatus.Applied, call.StartsWith("Decide", StringComparison.Ordinal) ? 3 : 0);

    [Fact]
    public void A_part_is_finished_as_its_anchor_has_decided()
    {
        _answer = static call => Reply(OutcomeStatus.Applied, call[0] == 'D' ? (long)TransactionDecision.Then : 0);
        Settler().Settle(Part("b"), Durability.Ephemeral);
        Assert.Equal(["Decide anchor Persistent Abort", "Finish b Ephemeral Then"], _calls);
    }

    [Fact]
    public void A_part_stays_as_long_as_its_anchor_does_not_say()
    {
        _answer = static _ => Reply(OutcomeStatus.NotLeader);
        Settler().Settle(Part("b"), Durability.Persistent);
        Assert.Equal(["Decide anchor Persistent Abort"], _calls);
        Assert.Single(_log.Lines);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(4)]
    public void A_decision_that_is_none_is_not_carried_out(long decision)
    {
        _answer = _ => Reply(OutcomeStatus.Applied, decision);
        Settler().Settle(Part("b"), Durability.Persistent);
        Assert.Single(_calls);
    }

    [Fact]
    public void An_undecided_record_is_aborted_and_forgotten()
    {
        Settle(Record(TransactionDecision.Pending, ("a", Durability.Persistent), ("b", Durability.Ephemeral)));
        Assert.Equal(
            [
                "Decide anchor Persistent Abort",
                "Finish a Persistent Abort",
                "Finish b Ephemeral Abort",
                "Forget anchor Persistent",
            ],
            _calls);
    }

    /// <summary>Its coordinator may ask again, and must not hear that it was aborted.</summary>
    [Fact]
    public void A_record_that_is_decided_meanwhile_is_not_forgotten()
    {
        _answer = static call => Reply(OutcomeStatus.Applied, call[0] == 'D' ? (long)TransactionDecision.Else : 0);
        Settle(Record(TransactionDecision.Pending, ("a", Durability.Persistent)));
        Assert.Equal(["Decide anchor Persistent Abort", "Finish a Persistent Else"], _calls);
    }

    [Fact]
    public void An_old_record_is_carried_out_and_forgotten()
    {
        _answer = static call => Reply(call[0] == 'F' ? OutcomeStatus.NotFound : OutcomeStatus.Applied);
        Settle(Record(TransactionDecision.Then, ("a", Durability.Persistent)));
        Assert.Equal(["Finish a Persistent Then", "Forget anchor Persistent"], _calls);
    }

    [Fact]
    public void A_tombstone_is_forgotten()
    {
        Settle(Record(TransactionDecision.Abort));
        Assert.Equal(["Forget anchor Persistent"], _calls);
    }

    [Fact]
    public void A_record_is_kept_until_all_participants_have_finished()
    {
        _answer = static call => Reply(call.Contains(" b ") ? OutcomeStatus.Busy : OutcomeStatus.Applied);
        Settle(Record(TransactionDecision.Then, ("a", Durability.Persistent), ("b", Durability.Persistent)));
        Assert.Equal(["Finish a Persistent Then", "Finish b Persistent Then"], _calls);
    }

    [Fact]
    public void Participants_are_told_some_at_a_time()
    {
        _answer = static _ => null;
        Settle(Record(
            TransactionDecision.Then,
            [.. Enumerable.Range(0, 20).Select(static i => ($"k{i}", Durability.Persistent))]));
        Assert.Equal(TransactionSettler.FinishesAtOnce, _calls.Count);
        AnswerHeld();
        Assert.Equal(2 * TransactionSettler.FinishesAtOnce, _calls.Count);
        AnswerHeld();
        AnswerHeld();
        Assert.Equal("Forget anchor Persistent", _calls[^1]);
        Assert.Equal(21, _calls.Count);
    }

    [Fact]
    public void What_is_under_way_is_not_begun_again()
    {
        _answer = static _ => null;
        TransactionSettler settler = Settler();
        settler.Settle(Part("b"), Durability.Persistent);
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Single(_calls);

        // Another part, and the record, are work of their own.
        settler.Settle(Part("c"), Durability.Persistent);
        settler.Settle(Part("b"), Durability.Ephemeral);
        settler.Settle(Record(TransactionDecision.Pending), Durability.Persistent);
        Assert.Equal(4, _calls.Count);
    }

    [Fact]
    public void What_has_ended_can_be_offered_again()
    {
        _answer = static _ => Reply(OutcomeStatus.Busy);
        TransactionSettler settler = Settler();
        settler.Settle(Part("b"), Durability.Persistent);
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Equal(2, _calls.Count);
    }

    [Fact]
    public void A_bounded_number_is_under_way_and_a_bounded_number_waits()
    {
        _answer = static _ => null;
        TransactionSettler settler = Settler();
        for (int i = 0; i < 1_000; i++)
        {
            settler.Settle(Part($"k{i}"), Durability.Persistent);
        }

        Assert.Equal(TransactionSettler.UnderWayMax, _calls.Count);
        _answer = static _ => Reply(OutcomeStatus.Applied, (long)TransactionDecision.Abort);
        AnswerHeld();
        int settled = TransactionSettler.UnderWayMax + TransactionSettler.WaitingMax;
        Assert.Equal(2 * settled, _calls.Count);

        // All that was dropped can come again.
        settler.Settle(Part("k999"), Durability.Persistent);
        Assert.Equal(2 * (settled + 1), _calls.Count);
    }

    [Fact]
    public void A_call_without_an_answer_ends_with_its_limit()
    {
        _answer = static _ => null;
        TransactionSettler settler = Settler();
        settler.Settle(Part("b"), Durability.Persistent);
        _time.Advance(TransactionSettler.CallLimit);
        Assert.Contains("no answer in time", Assert.Single(_log.Lines), StringComparison.Ordinal);
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Equal(2, _calls.Count);
    }

    [Fact]
    public void An_error_of_a_call_is_logged_and_hurts_nobody()
    {
        _answer = static _ => throw new InvalidOperationException("a bug");
        TransactionSettler settler = Settler();
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Single(_log.Lines);
        _answer = static _ => Reply(OutcomeStatus.Applied, (long)TransactionDecision.Abort);
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Equal("Finish b Persistent Abort", _calls[^1]);
    }

    [Fact]
    public void Nothing_is_begun_before_the_start_and_after_the_stop()
    {
        TransactionSettler settler = new(_time, _log);
        settler.Settle(Part("b"), Durability.Persistent);
        settler.Start(ExecuteAsync, GroupOf, static work => work(), _stop.Token);
        Assert.Empty(_calls);
        _answer = static _ => null;
        for (int i = 0; i < TransactionSettler.UnderWayMax + 5; i++)
        {
            settler.Settle(Part($"k{i}"), Durability.Persistent);
        }

        _stop.Cancel();
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Equal(TransactionSettler.UnderWayMax, _calls.Count);
        Assert.Empty(_log.Lines);
    }

    [Fact]
    public void Work_runs_outside_of_the_turn_that_offers_it()
    {
        List<Action> later = [];
        TransactionSettler settler = new(_time, _log);
        settler.Start(ExecuteAsync, GroupOf, later.Add, _stop.Token);
        settler.Settle(Part("b"), Durability.Persistent);
        Assert.Empty(_calls);
        Assert.Single(later)();
        Assert.Equal(2, _calls.Count);
    }

    [Fact]
    public void A_group_that_does_not_answer_is_tried_by_one_at_a_time()
    {
        _answer = static call => call.Contains("anchor", StringComparison.Ordinal)
            ? null
            : Reply(OutcomeStatus.Applied, (long)TransactionDecision.Abort);
        TransactionSettler settler = Settler();
        OfferAll(settler);
        Assert.Equal(TransactionSettler.UnderWayMax, _calls.Count);

        // Nobody knew that the anchor is silent. Now one that waited tries it, and others are settled beside.
        _time.Advance(TransactionSettler.CallLimit);
        _calls.Clear();
        OfferAll(settler);
        settler.Settle(Part("b", "other"), Durability.Persistent);
        Assert.Equal(["Decide other Persistent Abort", "Finish b Persistent Abort"], _calls);

        // It answers, so all are settled.
        _answer = static _ => Reply(OutcomeStatus.Applied, (long)TransactionDecision.Abort);
        AnswerHeld();
        _calls.Clear();
        OfferAll(settler);
        Assert.Equal(2 * 50, _calls.Count);
    }

    private static void OfferAll(TransactionSettler settler)
    {
        for (int i = 0; i < 50; i++)
        {
            settler.Settle(Part($"k{i}"), Durability.Persistent);
        }
    }

    private static int GroupOf(Durability durability, byte[] key) =>
        HashCode.Combine(durability, Encoding.UTF8.GetString(key));

    private static LateTransaction Part(string key, string anchor = "anchor") => new()
    {
        Id = s_id,
        IsRecord = false,
        AnchorKey = Encoding.UTF8.GetBytes(anchor),
        PartKey = Encoding.UTF8.GetBytes(key),
    };

    private static LateTransaction Record(
        TransactionDecision decision, params (string Key, Durability Durability)[] participants) => new()
        {
            Id = s_id,
            IsRecord = true,
            AnchorKey = "anchor"u8.ToArray(),
            Decision = decision,
            Participants =
            [
                .. participants.Select(
                    static participant => (participant.Durability, Encoding.UTF8.GetBytes(participant.Key))),
            ],
        };

    private static byte[] Reply(OutcomeStatus status, long number = 0)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        new Outcome(status, 0, number).Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private TransactionSettler Settler()
    {
        TransactionSettler settler = new(_time, _log);
        settler.Start(ExecuteAsync, GroupOf, static work => work(), _stop.Token);
        return settler;
    }

    private void Settle(LateTransaction late) => Settler().Settle(late, Durability.Persistent);

    private void AnswerHeld()
    {
        for (int left = _held.Count; left > 0; left--)
        {
            _held.Dequeue().TrySetResult(Reply(OutcomeStatus.Applied, (long)TransactionDecision.Abort));
        }
    }

    private async Task<byte[]> ExecuteAsync(ByteBuffer buffer, uint waitMs, CancellationToken ct)
    {
        string call = NameOf(buffer.Written.ToArray());
        buffer.Return();
        _calls.Add(call);
        if (_answer(call) is { } answer)
        {
            return answer;
        }

        TaskCompletionSource<byte[]> held = new();
        _held.Enqueue(held);
        await using CancellationTokenRegistration end = ct.Register(() => held.TrySetCanceled(ct));
        return await held.Task;
    }

    private static string NameOf(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        Assert.Equal(s_id, TransactionId.Read(command.Value));
        string name = command.Kind.ToString()["Transaction".Length..];
        string decision = command.Has(CommandFlags.Number) ? $" {(TransactionDecision)command.Number}" : "";
        return $"{name} {Encoding.UTF8.GetString(command.Key)} {command.Durability}{decision}";
    }
}
