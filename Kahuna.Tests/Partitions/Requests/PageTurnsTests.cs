using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// Pages of lists are read a few per turn, each client's and each group's in turn, and nothing else waits for those
/// that wait.
/// </summary>
public sealed class PageTurnsTests
{
    private const int PagesPerTurn = 2;
    private const int PageBytes = 60_000;

    private static readonly NodeId s_one = new(1);

    private readonly ReplyRoom _room = new();
    private readonly ModelCluster _cluster = new(1);

    public PageTurnsTests() => _cluster.Elect();

    [Fact]
    public void A_get_behind_a_thousand_pages_is_answered_in_its_turn()
    {
        ModelSink greedy = Ask(new ModelSink(), 1_000);
        for (int turn = 1; turn <= 20; turn++)
        {
            ModelSink other = _cluster.Send(s_one, (CommandKind.Get, "missing", ""));
            _cluster.Step();
            Assert.Single(other.Replies);
            Assert.Equal(turn * PagesPerTurn, greedy.Replies.Count);
        }

        _cluster.Settle();
        Assert.Equal(1_000, greedy.Replies.Count);
        Assert.All(greedy.Replies.Values, static reply => Assert.Equal(OutcomeStatus.Found, reply.Status));
    }

    [Fact]
    public void A_get_is_delivered_before_the_pages_of_its_turn()
    {
        List<string> order = [];
        OrderSink greedy = new("page", order);
        OrderSink other = new("get", order);
        _cluster.Send(s_one, greedy, [(0, Page(""))]);
        _cluster.Send(s_one, other, [(0, Encode(new Command { Kind = CommandKind.Get, Key = "missing"u8 }))]);
        _cluster.Step();
        Assert.Equal(["get", "page"], order);
    }

    [Fact]
    public void Clients_take_turns_page_by_page()
    {
        ModelSink greedy = Ask(new ModelSink(), 1_000);
        _cluster.Step();
        ModelSink modest = Ask(new ModelSink(), 10);
        ModelSink[] callers = [.. Enumerable.Range(0, 10).Select(_ => Ask(new ModelSink(), 1))];
        int before = greedy.Replies.Count;
        while (modest.Replies.Count < 10)
        {
            _cluster.Step();
        }

        Assert.InRange(greedy.Replies.Count - before, 9, 12);
        Assert.All(callers, static caller => Assert.Single(caller.Replies));
    }

    [Fact]
    public void Callers_of_a_page_each_do_not_hold_up_gets()
    {
        ModelSink[] callers = [.. Enumerable.Range(0, 500).Select(_ => Ask(new ModelSink(), 1))];
        ModelSink other = _cluster.Send(s_one, (CommandKind.Get, "missing", ""));
        _cluster.Step();
        Assert.Single(other.Replies);
        Assert.Equal(PagesPerTurn, callers.Sum(static caller => caller.Replies.Count));
        _cluster.Settle();
        Assert.All(callers, static caller => Assert.Single(caller.Replies));
    }

    [Fact]
    public void Ticks_do_not_change_whose_turn_it_is()
    {
        ModelSink[] callers = [.. Enumerable.Range(0, 40).Select(_ => Ask(new ModelSink(), 100))];
        for (int i = 0; i < 40; i++)
        {
            _cluster[1].Loops!.Loops[0].PostTick();
            _cluster.Step();
        }

        Assert.All(callers, static caller => Assert.Equal(PagesPerTurn, caller.Replies.Count));
    }

    [Fact]
    public void Groups_take_turns()
    {
        ModelCluster cluster = new(1, partitions: 2, configure: static options => options with { Loops = 1 });
        cluster.Elect();
        ModelSink[] sinks = [new ModelSink(), new ModelSink()];
        for (int partition = 0; partition < 2; partition++)
        {
            string start = Enumerable.Range(0, 100).Select(static number => $"k{number}").First(
                key => InitialPartition.Of(System.Text.Encoding.UTF8.GetBytes(key), 2) == partition);
            cluster.Send(
                s_one, sinks[partition], [.. Enumerable.Range(0, 100).Select(number => ((uint)number, Page(start)))]);
        }

        cluster.Step();
        Assert.All(sinks, static sink => Assert.Single(sink.Replies));
        cluster.Settle();
        Assert.All(sinks, static sink => Assert.Equal(100, sink.Replies.Count));
    }

    [Fact]
    public void Pages_of_a_client_that_does_not_read_wait_and_cost_no_turns()
    {
        Fill();
        SlowSink slow = Ask(new SlowSink(_room), 500);
        _cluster.Settle();
        int answered = slow.Answers.Count;
        Assert.InRange(answered, 50, 80);
        long turns = Turns;
        _cluster.Settle();
        Assert.Equal(0, Turns - turns);

        // Others page on, and the client's other reads are not behind its pages.
        ModelSink other = Ask(new ModelSink(), 100);
        _cluster.Settle();
        Assert.Equal(100, other.Replies.Count);

        while (slow.Take())
        {
            _cluster.Settle();
        }

        Assert.Equal(
            Enumerable.Range(0, 500).Select(static number => (uint)number),
            slow.Answers.Select(static answer => answer.Number).Order());
        Assert.InRange(slow.WaitedMax, PageBytes, ReplyRoom.StreamBytesMax);
        Assert.Equal(0, _room.Used);
        Assert.Equal(0, Parked);
    }

    [Fact]
    public void Pages_of_a_client_that_is_gone_are_dropped()
    {
        Fill();
        SlowSink slow = Ask(new SlowSink(_room), 500);
        _cluster.Settle();
        int answered = slow.Answers.Count;
        slow.Go();
        _cluster.Settle();
        Assert.Equal((answered, 0L, 0), (slow.Answers.Count, _room.Used, Parked));

        // Also in the middle of its turn.
        ModelSink gone = Ask(new ModelSink(), 1_000);
        _cluster.Step();
        gone.IsGone = true;
        _cluster.Settle();
        Assert.Equal((PagesPerTurn, 0), (gone.Replies.Count, Parked));
    }

    [Fact]
    public void Pages_that_wait_did_not_happen_when_leadership_is_lost()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        ModelSink sink = new();
        cluster.Send(leader, sink, [.. Enumerable.Range(0, 100).Select(static number => ((uint)number, Page("")))]);
        cluster.Cut.Add(leader);
        cluster.Tick(100);
        Assert.Equal(100, sink.Replies.Count);
        Assert.All(sink.Replies.Values, static reply => Assert.Equal(OutcomeStatus.NotLeader, reply.Status));
    }

    [Fact]
    public void A_node_that_stops_serves_the_pages_that_it_accepted()
    {
        ModelSink sink = Ask(new ModelSink(), 100);
        _cluster[1].Loops!.Loops[0].PostDrain();
        _cluster.Settle();
        Assert.True(_cluster[1].Loops!.Loops[0].IsDrained);
        Assert.Equal(100, sink.Replies.Count(static reply => reply.Value.Status == OutcomeStatus.Found));
    }

    [Fact]
    public void Lists_of_locks_wait_for_room_and_turn_as_well()
    {
        for (int i = 0; i < 200; i++)
        {
            _cluster.Send(s_one, LockCommands.Acquire($"lock {i:000} {new string('l', 900)}", "ann", leaseMs: 60_000));
        }

        _cluster.Settle();
        byte[] list = Encode(PageRequest.ToCommand(CommandKind.LockList, "lock"u8, 0, 0));
        SlowSink slow = new(_room);
        _cluster.Send(s_one, slow, [.. Enumerable.Range(0, 500).Select(number => ((uint)number, list))]);
        ModelSink other = _cluster.Send(s_one, (CommandKind.Get, "missing", ""));
        _cluster.Step();
        Assert.Single(other.Replies);
        Assert.Equal(PagesPerTurn, slow.Answers.Count);
        _cluster.Settle();
        Assert.InRange(slow.Answers.Count, PagesPerTurn, 499);
        while (slow.Take())
        {
            _cluster.Settle();
        }

        Assert.Equal(
            Enumerable.Range(0, 500).Select(static number => (uint)number),
            slow.Answers.Select(static answer => answer.Number).Order());
        Assert.Equal(0, Parked);
    }

    private long Turns => _cluster[1].Loops!.Loops[0].Turns;

    private int Parked => _cluster[1].Loops!.Group(0).Requests.Parked;

    private static byte[] Page(string start) => Encode(new Command
    {
        Kind = CommandKind.KeyRange,
        Flags = CommandFlags.Number | CommandFlags.AtRevision,
        Key = System.Text.Encoding.UTF8.GetBytes(start),
        AtRevision = RangeRequest.Options(1_000, RangeFlags.None),
    });

    private static byte[] Encode(Command command)
    {
        command.Durability = Durability.Persistent;
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    /// <summary>Writes a page full of keys.</summary>
    private void Fill()
    {
        for (int i = 0; i < PageBytes / 1_000; i++)
        {
            _cluster.Send(s_one, (CommandKind.Set, $"key {i:00}", new string('v', 1_000)));
        }

        _cluster.Settle();
    }

    private T Ask<T>(T sink, int pages)
        where T : ReplySink
    {
        _cluster.Send(s_one, sink, [.. Enumerable.Range(0, pages).Select(static number => ((uint)number, Page("")))]);
        return sink;
    }

    /// <summary>Notes the order in which answers are delivered. Owned by one test.</summary>
    private sealed class OrderSink(string name, List<string> order) : ReplySink(8)
    {
        public override bool IsClosed => false;

        public override void Deliver(ByteBuffer frame, int count)
        {
            order.Add(name);
            frame.Return();
        }
    }
}
