using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Clients that ask for much and do not take it: what they cost is bounded, nobody else waits for them, and when they
/// take it they get it all.
/// </summary>
public sealed class SlowReaderTests
{
    private const int Mega = 1 << 20;

    private static readonly NodeId s_one = new(1);

    private readonly ReplyRoom _room = new();
    private readonly ModelCluster _cluster = new(1);

    public SlowReaderTests() => _cluster.Elect();

    [Fact]
    public void Ten_thousand_reads_of_a_mebibyte_that_nobody_takes_hold_four()
    {
        Set("big", Mega);
        SlowSink slow = Ask(10_000, "big");
        _cluster.Settle();
        Assert.Equal(3, slow.Answers.Count);
        Assert.InRange(_room.Used, 3 * Mega, ReplyRoom.StreamBytesMax);

        // Others are answered at once, and a stream that does not read costs no turns.
        long turns = Turns;
        for (int i = 0; i < 100; i++)
        {
            ModelSink other = _cluster.Send(s_one, (CommandKind.Set, "small", "1"), (CommandKind.Get, "small", ""));
            _cluster.Settle();
            Assert.Equal(2, other.Replies.Count);
        }

        Assert.InRange(Turns - turns, 100, 400);
        _cluster.Tick(20);
        Assert.Equal(3, slow.Answers.Count);
    }

    [Fact]
    public void Who_takes_the_answers_gets_them_all_once_and_in_order()
    {
        const int Reads = 2_000;
        Set("big", Mega / 16);
        SlowSink slow = Ask(Reads, "big");
        do
        {
            _cluster.Settle();
        }
        while (slow.Take());
        Assert.Equal(
            Enumerable.Range(0, Reads).Select(static number => ((uint)number, OutcomeStatus.Found)), slow.Answers);
        Assert.InRange(slow.WaitedMax, 1, ReplyRoom.StreamBytesMax);
        Assert.Equal(0, _room.Used);
    }

    [Fact]
    public void A_value_larger_than_a_streams_share_is_answered_when_the_others_are_taken()
    {
        Set("small", Mega / 2);
        Set("huge", 8 * Mega);
        SlowSink slow = Ask(1, "small");
        Ask(slow, 1, "huge", first: 1);
        _cluster.Settle();
        Assert.Single(slow.Answers);
        slow.Take();
        _cluster.Settle();
        Assert.Equal(2, slow.Answers.Count);
    }

    [Fact]
    public void Reads_of_a_client_that_is_gone_are_dropped()
    {
        Set("big", Mega);
        SlowSink slow = Ask(1_000, "big");
        _cluster.Settle();
        slow.Go();
        _cluster.Settle();
        Assert.Equal(3, slow.Answers.Count);
        Assert.Equal(0, _room.Used);
        Assert.Equal(0, _cluster[1].Loops!.Group(0).Requests.Parked);
    }

    [Fact]
    public void Reads_that_wait_are_answered_with_did_not_happen_when_leadership_is_lost()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster.Send(leader, (CommandKind.Set, "big", new string('v', Mega)));
        cluster.Settle();
        SlowSink slow = new(_room);
        cluster.Send(
            leader,
            slow,
            [.. Enumerable.Range(0, 10).Select(static number => ((uint)number, Encode(CommandKind.Get, "big")))]);
        cluster.Settle();
        Assert.Equal(3, slow.Answers.Count);
        cluster.Cut.Add(leader);
        cluster.Tick(100);
        Assert.Equal(10, slow.Answers.Count);
        Assert.All(slow.Answers.Skip(3), static answer => Assert.Equal(OutcomeStatus.NotLeader, answer.Status));
    }

    [Fact]
    public void Many_who_do_not_read_leave_room_for_those_who_do()
    {
        Set("big", Mega);
        for (int i = 0; i < 500; i++)
        {
            Ask(100, "big");
        }

        _cluster.Settle();
        Assert.InRange(_room.Used, _room.BytesMax / 2, _room.BytesMax);

        // Their room is theirs; small answers need none.
        Set("small", 1_000);
        SlowSink reader = new(_room);
        for (int i = 0; i < 100; i++)
        {
            Ask(reader, 10, "small", first: i * 10);
            _cluster.Settle();
            while (reader.Take())
            {
            }
        }

        Assert.Equal(1_000, reader.Answers.Count);
    }

    [Fact]
    public void One_turn_makes_a_slice_of_the_answers_and_others_come_in_between()
    {
        Set("big", Mega);
        const int Readers = 64;
        SlowSink[] readers = [.. Enumerable.Range(0, Readers).Select(_ => Ask(1, "big"))];
        long turns = Turns;
        ModelSink? other = null;
        _cluster.Step();
        int early = readers.Count(static reader => reader.Answers.Count > 0);
        Assert.InRange(early, 1, 5);
        other = _cluster.Send(s_one, (CommandKind.Get, "missing", ""));
        _cluster.Settle();
        Assert.Single(other.Replies);
        Assert.All(readers, static reader => Assert.Single(reader.Answers));
        Assert.InRange(Turns - turns, Readers / 5, Readers);
    }

    [Theory]
    [InlineData(1 << 10)]
    [InlineData(60 << 10)]
    [InlineData(1 << 20)]
    public void Writes_that_return_values_end_unknown_past_their_bound(int valueBytes)
    {
        const long Asked = 96 * Mega;
        Set("big", valueBytes);
        byte[] write = Encode(CommandKind.Set, "big", CommandFlags.ReturnPrevious | CommandFlags.IfRevision);
        SlowSink slow = new(_room);
        int writes = (int)(Asked / valueBytes);
        _cluster.Send(s_one, slow, [.. Enumerable.Range(0, writes).Select(number => ((uint)number, write))]);
        _cluster.Settle();
        Assert.Equal(writes, slow.Answers.Count);
        Assert.InRange(_room.Used, 32 * Mega, ReplyRoom.WrittenBytesMax + (2 * Mega));
        int whole = slow.Answers.Count(static answer => answer.Status == OutcomeStatus.ConditionFailed);
        Assert.InRange((long)whole * valueBytes, 60 * Mega, ReplyRoom.WrittenBytesMax);
        Assert.Equal(writes - whole, slow.Answers.Count(static answer => answer.Status == OutcomeStatus.Unknown));
    }

    [Fact]
    public void Many_whose_writes_return_values_that_they_do_not_take_share_one_room()
    {
        const int Writers = 20;
        Set("big", 60_000);
        byte[] write = Encode(CommandKind.Set, "big", CommandFlags.ReturnPrevious | CommandFlags.IfRevision);
        for (int i = 0; i < Writers; i++)
        {
            _cluster.Send(
                s_one, new SlowSink(_room), [.. Enumerable.Range(0, 200).Select(number => ((uint)number, write))]);
            _cluster.Settle();
        }

        Assert.InRange(_room.Used, _room.BytesMax / 2, _room.BytesMax + (Writers * ReplyRoom.SmallBytes));

        // Who reads is answered, with a value or without.
        SlowSink reader = new(_room);
        _cluster.Send(s_one, reader, [(0, write), (1, Encode(CommandKind.Set, "other"))]);
        _cluster.Settle();
        Assert.Equal([(0, OutcomeStatus.ConditionFailed), (1, OutcomeStatus.Applied)], reader.Answers);
    }

    [Fact]
    public void Observers_of_a_lock_that_do_not_read_are_answered_when_they_do()
    {
        // A note and an owner for each of many holders make a picture of half a mebibyte.
        for (int i = 0; i < 500; i++)
        {
            _cluster.Send(
                s_one,
                LockCommands.Acquire(
                    "l",
                    $"owner-{i}-{new string('x', 200)}",
                    leaseMs: 60_000,
                    mode: LockMode.Permit,
                    permits: 1_000,
                    note: new string('n', 1_000)));
        }

        _cluster.Settle();
        SlowSink slow = new(_room);
        _cluster.Send(
            s_one,
            slow,
            [.. Enumerable.Range(0, 500).Select(static number => ((uint)number, LockCommands.Observe("l", 0, 0)))]);
        do
        {
            _cluster.Settle();
            Assert.InRange(_room.Used, 0, ReplyRoom.StreamBytesMax);
        }
        while (slow.Take());
        Assert.Equal(
            Enumerable.Range(0, 500).Select(static number => (uint)number),
            slow.Answers.Select(static answer => answer.Number).Order());
        Assert.InRange(slow.WaitedMax, Mega, ReplyRoom.StreamBytesMax);
    }

    [Fact]
    public void An_observer_that_takes_its_answer_late_is_told_how_the_lock_is_then()
    {
        Set("big", Mega);
        SlowSink slow = Ask(3, "big");
        _cluster.Settle();
        Set("rest", (int)(ReplyRoom.StreamBytesMax - _room.Used) - 400);
        Ask(slow, 1, "rest", first: 3);
        _cluster.Settle();
        Assert.Equal(4, slow.Answers.Count);
        _cluster.Send(s_one, slow, [(4, LockCommands.Observe("l", 0, holdMs: 30_000))]);
        _cluster.Settle();
        ModelSink ann = _cluster.Send(
            s_one, LockCommands.Acquire("l", "ann", leaseMs: 60_000, note: new string('n', 1_000)));
        _cluster.Settle();
        _cluster.Send(s_one, LockCommands.Release("l", "ann", ann.Replies[0].Revision));
        _cluster.Settle();
        Assert.Equal(4, slow.Answers.Count);
        while (slow.Take())
        {
            _cluster.Settle();
        }

        Assert.Equal((4U, OutcomeStatus.NotFound), slow.Answers[^1]);
        Assert.Equal(0, slow.HeldBack);
    }

    private long Turns => _cluster[1].Loops!.Loops[0].Turns;

    private static byte[] Encode(CommandKind kind, string key, CommandFlags flags = CommandFlags.None)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        new Command
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Key = System.Text.Encoding.UTF8.GetBytes(key),
            Flags = flags,
            ComparedRevision = long.MaxValue,
        }.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private void Set(string key, int bytes)
    {
        _cluster.Send(s_one, (CommandKind.Set, key, new string('v', bytes)));
        _cluster.Settle();
    }

    private SlowSink Ask(int reads, string key)
    {
        SlowSink sink = new(_room);
        Ask(sink, reads, key, first: 0);
        return sink;
    }

    private void Ask(SlowSink sink, int reads, string key, int first)
    {
        byte[] read = Encode(CommandKind.Get, key);
        _cluster.Send(s_one, sink, [.. Enumerable.Range(first, reads).Select(number => ((uint)number, read))]);
    }
}
