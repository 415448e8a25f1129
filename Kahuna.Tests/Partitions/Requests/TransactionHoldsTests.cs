using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>Holds of pessimistic transactions at a leader: who is answered when, and which writes keep away.</summary>
public sealed class TransactionHoldsTests
{
    private const int TickMs = 50;

    private readonly ModelCluster _cluster = new(3);
    private NodeId _leader;

    public TransactionHoldsTests()
    {
        _cluster.Elect();
        _cluster.Tick(100);
        _leader = _cluster.LeaderOf();
        Set("k", "one");
    }

    private HoldCounts Counts => _cluster[_leader.Value].Loops!.Group(0)!.Requests.Holds;

    [Fact]
    public void A_hold_reads_the_key_and_others_wait_in_order()
    {
        Assert.Equal((OutcomeStatus.Found, "one"), Answer(Hold(1, "k", HoldMode.Exclusive)));
        Assert.Equal((OutcomeStatus.Found, ""), Answer(Hold(1, "k", HoldMode.Exclusive, HoldFlags.WithoutValue)));
        Assert.Equal(OutcomeStatus.NotFound, Answer(Hold(1, "none", HoldMode.Shared)).Status);
        ModelSink second = Hold(2, "k", HoldMode.Exclusive);
        ModelSink third = Hold(3, "k", HoldMode.Shared);
        Assert.Empty(second.Replies);
        Assert.Equal(new HoldCounts(3, 2, 2), Counts);
        Assert.Equal(OutcomeStatus.Applied, Answer(Commit(1, "k", "two")).Status);
        Assert.Equal((OutcomeStatus.Found, "two"), Answer(second));
        Assert.Empty(third.Replies);
        Assert.Equal(OutcomeStatus.Found, Answer(Release(2)).Status);
        Assert.Equal((OutcomeStatus.Found, "two"), Answer(third));
        Release(3);
        Assert.Equal(default, Counts);
        Assert.Equal(OutcomeStatus.NotFound, Answer(Release(3)).Status);
    }

    [Fact]
    public void Writes_of_others_keep_away_and_reads_and_other_keys_do_not()
    {
        Hold(1, "a/k", HoldMode.Shared);
        foreach (ModelSink write in new[]
        {
            Send(Encode(new Command { Kind = CommandKind.Set, Key = "a/k"u8 })),
            Send(Encode(new Command { Kind = CommandKind.Delete, Key = "a/k"u8 })),
            Send(Encode(new Command
            {
                Kind = CommandKind.Set,
                Key = "a/k"u8,
                Flags = CommandFlags.IfValue,
                ComparedValue = "0123456789abcdef"u8,
            })),
            Send(Encode(new Command
            {
                Kind = CommandKind.Increment,
                Key = "a/k"u8,
                Flags = CommandFlags.Number,
                Number = 1,
            })),
            Send(Encode(new Command
            {
                Kind = CommandKind.Extend,
                Key = "a/k"u8,
                Flags = CommandFlags.Ttl,
                TtlMs = 1,
            })),
            Send(Encode(new Command
            {
                Kind = CommandKind.KeyRangeDelete,
                Key = "a/"u8,
                Flags = CommandFlags.AtRevision | CommandFlags.Number,
                AtRevision = 10,
            })),
            Send(Encode(new Command { Kind = CommandKind.Script, Key = "a/z"u8, Value = new byte[8] })),
            Send(Transaction(null, "a/k", "x")),
            Send(Prepare(null, "a/k", "x")),
        })
        {
            Assert.Equal(OutcomeStatus.KeyInTransaction, Answer(write).Status);
        }

        Assert.Equal(
            OutcomeStatus.NotFound, Answer(Send(Encode(new Command { Kind = CommandKind.Get, Key = "a/k"u8 }))).Status);
        Set("a/other", "x");
        Assert.Equal(OutcomeStatus.Applied, Answer(Commit(1, "a/k", "own")).Status);
        Set("a/k", "later");
    }

    [Fact]
    public void A_commit_that_meets_the_hold_of_another_transaction_is_a_conflict()
    {
        Hold(1, "k", HoldMode.Shared);
        Hold(2, "k", HoldMode.Shared);
        Assert.Equal(OutcomeStatus.TransactionConflict, Answer(Commit(1, "k", "x")).Status);
        Assert.Equal(OutcomeStatus.TransactionConflict, Answer(Send(Prepare(1, "k", "x"))).Status);
        Assert.Equal(new HoldCounts(2, 2, 0), Counts);
    }

    /// <summary>
    /// The answer to a commit was lost, and another transaction took the key meanwhile: "nothing was changed" would be
    /// false.
    /// </summary>
    [Fact]
    public void A_commit_that_comes_again_gets_its_outcome_although_others_hold_the_key()
    {
        Hold(1, "k", HoldMode.Exclusive);
        byte[] commit = Transaction(1, "k", "two", number: 1);
        Assert.Equal(OutcomeStatus.Applied, Answer(Send(commit)).Status);
        Assert.Equal((OutcomeStatus.Found, "two"), Answer(Hold(2, "k", HoldMode.Exclusive)));
        Assert.Equal(OutcomeStatus.Applied, Answer(Send(commit)).Status);
        Assert.Equal(
            OutcomeStatus.TransactionConflict, Answer(Send(Transaction(1, "k", "three", number: 2))).Status);
        Assert.Equal(OutcomeStatus.Applied, Answer(Commit(2, "k", "four")).Status);
        Assert.Equal((OutcomeStatus.Found, "four"), Answer(Hold(3, "k", HoldMode.Shared)));
        Release(3);

        // A part that is being committed keeps others away, too.
        Assert.Equal(OutcomeStatus.Applied, Answer(Send(Prepare(null, "k", "five"))).Status);
        Assert.Equal(OutcomeStatus.Applied, Answer(Send(commit)).Status);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Answer(Send(Transaction(1, "k", "six", number: 3))).Status);
        Assert.Equal(
            OutcomeStatus.NumberReused, Answer(Send(Transaction(1, "k", "seven", number: 1))).Status);
    }

    [Fact]
    public void A_prepared_part_takes_the_holds_along()
    {
        Hold(1, "k", HoldMode.Exclusive);
        ModelSink next = Hold(2, "k", HoldMode.Exclusive);
        Assert.Equal(OutcomeStatus.Applied, Answer(Send(Prepare(1, "k", "two"))).Status);

        // The next one holds the key, and waits for the transaction that is being committed.
        Assert.Equal(new HoldCounts(1, 1, 0), Counts);
        Assert.Empty(next.Replies);
        Send(Encode(new Command
        {
            Kind = CommandKind.TransactionFinish,
            Key = "k"u8,
            Value = new byte[TransactionId.Bytes],
            Flags = CommandFlags.Number,
            Number = (long)TransactionDecision.Then,
        }));
        Assert.Equal((OutcomeStatus.Found, "two"), Answer(next));
    }

    [Fact]
    public void A_client_that_vanishes_blocks_others_for_its_time()
    {
        ModelSink gone = Hold(1, "k", HoldMode.Exclusive, leftMs: 2_000);
        gone.IsGone = true;
        ModelSink next = Hold(2, "k", HoldMode.Exclusive, waitMs: 10_000);
        _cluster.Tick(1_900 / TickMs);
        Assert.Empty(next.Replies);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Answer(TrySet("k", "x")).Status);
        _cluster.Tick(200 / TickMs);
        Assert.Equal(OutcomeStatus.Found, Answer(next).Status);
    }

    [Fact]
    public void A_wait_ends_with_its_time_and_the_place_stays_for_a_while()
    {
        Hold(1, "k", HoldMode.Exclusive);
        ModelSink second = Hold(2, "k", HoldMode.Exclusive, waitMs: 1_000);
        ModelSink third = Hold(3, "k", HoldMode.Exclusive, waitMs: 30_000);
        _cluster.Tick((1_000 / TickMs) + 1);
        Assert.Equal(OutcomeStatus.Queued, Answer(second).Status);
        second = Hold(2, "k", HoldMode.Exclusive);
        Release(1);
        Assert.Equal(OutcomeStatus.Found, Answer(second).Status);
        Assert.Empty(third.Replies);

        // The place of a client that has gone is given up.
        ModelSink fourth = Hold(4, "k", HoldMode.Exclusive, waitMs: 30_000);
        third.IsGone = true;
        _cluster.Tick((TransactionHolds.AbsentMsMax / TickMs) + 2);
        Assert.Equal(new HoldCounts(2, 1, 1), Counts);
        Release(2);
        Assert.Equal(OutcomeStatus.Found, Answer(fourth).Status);
    }

    [Fact]
    public void A_transaction_that_waits_beyond_its_time_is_refused()
    {
        Hold(1, "k", HoldMode.Exclusive);
        ModelSink late = Hold(2, "k", HoldMode.Exclusive, leftMs: 500, waitMs: 30_000);
        _cluster.Tick((500 / TickMs) + 1);
        Assert.Equal(OutcomeStatus.TransactionConflict, Answer(late).Status);
        Assert.Equal(new HoldCounts(1, 1, 0), Counts);
    }

    [Fact]
    public void Who_might_close_a_circle_is_refused_at_once()
    {
        Hold(1, "k", HoldMode.Exclusive);
        Hold(2, "other", HoldMode.Exclusive);
        Assert.Empty(Hold(1, "other", HoldMode.Exclusive).Replies);
        ModelSink younger = Hold(2, "k", HoldMode.Exclusive);
        Assert.Equal(OutcomeStatus.TransactionConflict, Answer(younger).Status);
        Assert.Equal(
            OutcomeStatus.TransactionConflict,
            Answer(Hold(3, "k", HoldMode.Exclusive, HoldFlags.HoldsOthers)).Status);
    }

    [Fact]
    public void Holds_end_with_the_leadership_and_those_who_wait_are_sent_on()
    {
        Hold(1, "k", HoldMode.Exclusive);
        ModelSink waits = Hold(2, "k", HoldMode.Exclusive, waitMs: 30_000);
        NodeId before = _leader;
        _cluster.Cut.Add(before);
        _leader = _cluster.Elect();
        Assert.NotEqual(before, _leader);
        Assert.Equal(default, Counts);
        Assert.Equal((OutcomeStatus.Found, "one"), Answer(Hold(2, "k", HoldMode.Exclusive)));
        _cluster.Cut.Clear();
        _cluster.Tick(5);
        Assert.Equal(OutcomeStatus.NotLeader, Answer(waits).Status);
        Assert.Equal(default, _cluster[before.Value].Loops!.Group(0)!.Requests.Holds);

        // The commit of the first one is judged by its conditions, and by who holds the key now.
        Assert.Equal(OutcomeStatus.TransactionConflict, Answer(Commit(1, "k", "late")).Status);
        Assert.Equal(OutcomeStatus.Applied, Answer(Commit(2, "k", "two")).Status);
    }

    [Fact]
    public void The_read_comes_after_writes_that_were_taken_before()
    {
        ModelSink sink = new();
        _cluster.Send(
            _leader,
            sink,
            [
                (0, Encode(new Command { Kind = CommandKind.Set, Key = "k"u8, Value = "before"u8 })),
                (1, Request(1, "k", HoldMode.Exclusive, HoldFlags.None, 30_000, 0)),
                (2, Encode(new Command { Kind = CommandKind.Set, Key = "k"u8, Value = "after"u8 })),
            ]);
        _cluster.Settle();
        Assert.Equal((OutcomeStatus.Found, "after"), (sink.Replies[1].Status, sink.Replies[1].Value));
        Assert.Equal(OutcomeStatus.KeyInTransaction, Answer(TrySet("k", "x")).Status);
    }

    private static (OutcomeStatus Status, string Value) Answer(ModelSink sink) =>
        (Assert.Single(sink.Replies).Value.Status,
            sink.Replies[0].Status is OutcomeStatus.Found ? sink.Replies[0].Value : "");

    private ModelSink Hold(
        ulong id,
        string key,
        HoldMode mode,
        HoldFlags flags = HoldFlags.None,
        uint leftMs = 60_000,
        long waitMs = 5_000) => Send(Request(id, key, mode, flags, leftMs, waitMs));

    private static byte[] Request(
        ulong id, string key, HoldMode mode, HoldFlags flags, uint leftMs, long waitMs) => Encode(new Command
        {
            Kind = CommandKind.TransactionHold,
            Key = Encoding.UTF8.GetBytes(key),
            Flags = CommandFlags.Number,
            Number = waitMs,
            Value = new HoldBody(new TransactionId(0, id), (long)id, leftMs, mode, flags).ToBytes(),
        });

    private ModelSink Release(ulong id) => Send(Encode(new Command
    {
        Kind = CommandKind.TransactionRelease,
        Key = "any"u8,
        Value = IdBytes(id),
    }));

    private ModelSink Commit(ulong id, string key, string value) => Send(Transaction(id, key, value));

    private static byte[] Transaction(ulong? id, string key, string value, ulong number = 0) => Encode(new Command
    {
        Kind = CommandKind.Transaction,
        Key = Encoding.UTF8.GetBytes(key),
        Flags = (id is null ? CommandFlags.None : CommandFlags.IfValue)
            | (number == 0 ? CommandFlags.None : CommandFlags.Session | CommandFlags.Opening),
        SessionId = number == 0 ? 0UL : 7,
        Sequence = number,
        ComparedValue = id is { } holder ? IdBytes(holder) : default,
        Value = Body(key, value),
    });

    private static byte[] Prepare(ulong? id, string key, string value)
    {
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(body, default, 10_000, PrepareFlags.None, "z"u8, 0);
        body.Append(Body(key, value));
        return Encode(new Command
        {
            Kind = CommandKind.TransactionPrepare,
            Key = Encoding.UTF8.GetBytes(key),
            Flags = id is null ? CommandFlags.None : CommandFlags.IfValue,
            ComparedValue = id is { } holder ? IdBytes(holder) : default,
            Value = body.Written,
        });
    }

    private static byte[] Body(string key, string value)
    {
        ByteBuffer body = ByteBuffer.Rent();
        TransactionBody.WriteHeader(body, 0, 1, 0);
        CommandList.Append(body, new Command
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(key),
            Value = Encoding.UTF8.GetBytes(value),
        });
        return body.Written.ToArray();
    }

    private static byte[] IdBytes(ulong id)
    {
        byte[] bytes = new byte[TransactionId.Bytes];
        new TransactionId(0, id).Write(bytes);
        return bytes;
    }

    private static byte[] Encode(Command command)
    {
        command.Durability = Durability.Persistent;
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        return bytes.Written.ToArray();
    }

    private ModelSink TrySet(string key, string value) => Send(Encode(new Command
    {
        Kind = CommandKind.Set,
        Key = Encoding.UTF8.GetBytes(key),
        Value = Encoding.UTF8.GetBytes(value),
    }));

    private void Set(string key, string value) =>
        Assert.Equal(OutcomeStatus.Applied, Answer(TrySet(key, value)).Status);

    private ModelSink Send(byte[] command)
    {
        ModelSink sink = _cluster.Send(_leader, command);
        _cluster.Settle();
        return sink;
    }
}
