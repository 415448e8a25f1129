using System.Text;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// Cuts on a leader: what is answered to whom, when they end, and that nobody holds up a partition with them.
/// </summary>
public sealed class RangeCutsTests
{
    private readonly ModelCluster _cluster = new(3);
    private NodeId _leader;

    public RangeCutsTests()
    {
        _cluster.Elect();

        // Until the preferred node leads.
        _cluster.Tick(100);
        _leader = _cluster.LeaderOf();
        Set("k/1", "one");
        Set("k/2", "two");
    }

    [Fact]
    public void Pages_of_a_cut_show_its_moment_and_others_the_newest_state()
    {
        long cut = Open();
        Set("k/1", "later");
        Set("k/3", "new");
        Assert.Equal("k/1=one k/2=two", Page(cut));
        Assert.Equal("k/1=later k/2=two k/3=new", Page(0));
    }

    [Fact]
    public void A_cut_is_confirmed_until_its_range_changes()
    {
        long cut = Open();
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutConfirm, cut).Status);
        Set("other", "x");
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutConfirm, cut).Status);
        Set("k/2", "later");
        Assert.Equal(OutcomeStatus.ConditionFailed, Ask(CommandKind.CutConfirm, cut).Status);
        Assert.Equal("k/1=one k/2=two", Page(cut));
    }

    [Fact]
    public void An_ended_or_unknown_cut_has_expired()
    {
        long cut = Open();
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutEnd, cut).Status);
        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.KeyRange, cut).Status);
        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.CutConfirm, cut).Status);
        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.KeyRange, 99).Status);
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutEnd, 99).Status);
        Assert.Equal(0, Cuts);
    }

    [Fact]
    public void A_page_outside_of_the_cut_is_refused()
    {
        long cut = Open();
        Assert.Equal(
            OutcomeStatus.InvalidArgument, Send(Encode(CommandKind.KeyRange, cut, start: "a")).Replies[0].Status);
    }

    [Fact]
    public void A_cut_ends_with_its_leadership_and_no_other_leader_takes_its_number_for_one_of_its_own()
    {
        long cut = Open();
        NodeId before = _leader;
        _cluster.Cut.Add(before);
        _leader = _cluster.Elect();
        Assert.NotEqual(before, _leader);
        long next = Open();
        Assert.NotEqual(cut, next);
        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.CutConfirm, cut).Status);
        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.KeyRange, cut).Status);

        // The first leader comes back and leads again: its old cut is gone.
        _cluster.Cut.Clear();
        _cluster.Tick(5);
        Assert.Equal(0, _cluster[before.Value].Loops!.Group(0)!.Requests.Cuts);
        Assert.Equal("k/1=one k/2=two", Page(next));
    }

    [Fact]
    public void Idle_cuts_end_and_so_do_old_ones()
    {
        long idle = Open();
        long used = Open();
        for (int i = 0; i < 5; i++)
        {
            _cluster.Tick((RangeCuts.IdleMsMax / 50 / 2) + 10);
            Assert.NotEqual("", Page(used));
        }

        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.KeyRange, idle).Status);
        for (int i = 0; i < 8; i++)
        {
            _cluster.Tick(RangeCuts.IdleMsMax / 50 / 2);
            Ask(CommandKind.KeyRange, used);
        }

        Assert.Equal(OutcomeStatus.ScanExpired, Ask(CommandKind.KeyRange, used).Status);
        Assert.Equal(0, Cuts);
    }

    [Fact]
    public void A_client_has_so_many_cuts_and_a_partition_too()
    {
        ModelSink one = new();
        OpenMany(one, RangeCuts.CutsPerClientMax + 1);
        Assert.Equal(OutcomeStatus.Busy, one.Replies[RangeCuts.CutsPerClientMax].Status);
        ModelSink other = new();
        OpenMany(other, RangeCuts.CutsPerClientMax);
        Assert.Equal(RangeCuts.CutsMax, Cuts);
        ModelSink third = new();
        OpenMany(third, 1);
        Assert.Equal(OutcomeStatus.Busy, third.Replies[0].Status);
        Assert.Equal(RangeCuts.CutsMax, Cuts);

        // The place of a client that has gone is free.
        one.IsGone = true;
        ModelSink fourth = new();
        OpenMany(fourth, 1);
        Assert.Equal(OutcomeStatus.Found, fourth.Replies[0].Status);
        Assert.Equal(RangeCuts.CutsMax, Cuts);
    }

    [Fact]
    public void Proposals_wait_for_the_confirmation_of_a_cut_that_holds_them()
    {
        ModelSink opened = Send(Encode(CommandKind.CutOpen, 0, RangeFlags.Hold));
        Assert.Equal((OutcomeStatus.Found, 0L), (opened.Replies[0].Status, opened.Replies[0].Revision));
        ModelSink written = _cluster.Send(_leader, (CommandKind.Set, "k/1", "later"));
        _cluster.Settle();
        Assert.Empty(written.Replies);
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutConfirm, opened.Replies[0].Number).Status);
        Assert.Equal(OutcomeStatus.Applied, written.Replies[0].Status);
    }

    [Fact]
    public void Proposals_go_on_by_themselves_when_nobody_confirms()
    {
        Send(Encode(CommandKind.CutOpen, 0, RangeFlags.Hold));
        ModelSink written = _cluster.Send(_leader, (CommandKind.Set, "k/1", "later"));
        _cluster.Pass(ProposalHold.MsMax - 1);
        _cluster.Settle();
        Assert.Empty(written.Replies);
        _cluster.Pass(2);
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, written.Replies[0].Status);
    }

    [Fact]
    public void Proposals_are_held_for_a_tenth_of_the_time_at_most()
    {
        int held = 0;
        for (int ms = 0; ms < 1_000; ms++)
        {
            ModelSink sink = new();
            _cluster.Send(_leader, Encode(CommandKind.CutOpen, 0, RangeFlags.Hold), to: sink);
            _cluster.Settle();
            if (sink.Replies[0].Status == OutcomeStatus.Found)
            {
                Ask(CommandKind.CutEnd, sink.Replies[0].Number, settles: ms % 7 == 0);
            }

            _cluster.Pass(1);
            held += _cluster[_leader.Value].Loops!.Group(0)!.Requests.HoldsProposals ? 1 : 0;
        }

        Assert.InRange(held, 1, 110);
    }

    [Fact]
    public void A_cut_that_holds_proposals_has_what_was_proposed_before()
    {
        ModelSink written = _cluster.Send(_leader, (CommandKind.Set, "k/1", "before"));
        _cluster.Settle(sync: false);
        ModelSink opened = new();
        _cluster.Send(_leader, Encode(CommandKind.CutOpen, 0, RangeFlags.Hold), to: opened);
        _cluster.Settle(sync: false);
        Assert.Empty(opened.Replies);
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, written.Replies[0].Status);
        long cut = opened.Replies[0].Number;
        Assert.Equal(OutcomeStatus.Found, Ask(CommandKind.CutConfirm, cut).Status);
        Assert.Equal("k/1=before k/2=two", Page(cut));
    }

    [Fact]
    public void An_opening_that_waits_is_answered_when_leadership_is_lost()
    {
        _cluster.Send(_leader, (CommandKind.Set, "k/1", "before"));
        _cluster.Settle(sync: false);
        ModelSink opened = new();
        _cluster.Send(_leader, Encode(CommandKind.CutOpen, 0, RangeFlags.Hold), to: opened);
        _cluster.Settle(sync: false);
        Assert.Empty(opened.Replies);
        _cluster[_leader.Value].Loops!.Group(0)!.Fail();
        _cluster[_leader.Value].Loops!.Loops[0].PostTick();
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Internal, opened.Replies[0].Status);
    }

    private int Cuts => _cluster[_leader.Value].Loops!.Group(0)!.Requests.Cuts;

    private void Set(string key, string value)
    {
        ModelSink sink = _cluster.Send(_leader, (CommandKind.Set, key, value));
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
    }

    private long Open()
    {
        ModelSink sink = Send(Encode(CommandKind.CutOpen, 0));
        Assert.Equal(OutcomeStatus.Found, sink.Replies[0].Status);
        return sink.Replies[0].Number;
    }

    private void OpenMany(ModelSink sink, int count)
    {
        _cluster.Send(
            _leader,
            sink,
            [.. Enumerable.Range(0, count).Select(static i => ((uint)i, Encode(CommandKind.CutOpen, 0)))]);
        _cluster.Settle();
        Assert.Equal(count, sink.Replies.Count);
    }

    private (OutcomeStatus Status, long Revision, long Number, string Value) Ask(
        CommandKind kind, long cut, bool settles = true)
    {
        ModelSink sink = new();
        _cluster.Send(_leader, Encode(kind, cut), to: sink);
        if (!settles)
        {
            return default;
        }

        _cluster.Settle();
        return sink.Replies[0];
    }

    private string Page(long cut)
    {
        ModelSink sink = new();
        byte[] page = [];
        sink.Raw = bytes => page = bytes;
        _cluster.Send(_leader, Encode(CommandKind.KeyRange, cut), to: sink);
        _cluster.Settle();
        List<string> entries = [];
        Assert.True(RangePage.TryRead(page, out RangePage read));
        while (read.TryNext())
        {
            entries.Add($"{Encoding.UTF8.GetString(read.Entry.Key)}={Encoding.UTF8.GetString(read.Entry.Value)}");
        }

        return string.Join(' ', entries);
    }

    private ModelSink Send(byte[] command)
    {
        ModelSink sink = _cluster.Send(_leader, command);
        _cluster.Settle();
        return sink;
    }

    private static byte[] Encode(
        CommandKind kind, long cut, RangeFlags flags = RangeFlags.None, string start = "k/")
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        new Command
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number | CommandFlags.AtRevision | CommandFlags.IfValue
                | (cut > 0 ? CommandFlags.IfRevision : 0),
            Key = Encoding.UTF8.GetBytes(start),
            ComparedValue = "k0"u8,
            ComparedRevision = cut,
            AtRevision = RangeRequest.Options(100, flags),
        }.Write(bytes);
        byte[] encoded = bytes.Written.ToArray();
        bytes.Return();
        return encoded;
    }
}
