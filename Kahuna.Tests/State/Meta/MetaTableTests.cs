using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Meta;

/// <summary>The records of the meta group: every command may come twice, or late, and then changes nothing.</summary>
public sealed class MetaTableTests
{
    private static readonly GroupId s_group = GroupId.Of(3, isEphemeral: true);

    private readonly StateMachine _state = new(new StateLimits());

    public MetaTableTests() => Apply(
        new MetaCommand(CommandKind.Configure) { Number = 4, Voters = [new NodeId(1), new NodeId(2), new NodeId(3)] });

    private MetaView View => _state.Meta.View();

    [Fact]
    public void TheConfigurationIsRecordedOnce()
    {
        Apply(new MetaCommand(CommandKind.Configure) { Number = 9, Voters = [new NodeId(7)] });
        Assert.Equal(4, View.Partitions);
        Assert.Equal([1, 2, 3], View.Voters.Select(static voter => (int)voter.Value));
    }

    [Fact]
    public void OnlyALaterStartTakesTheSameNodesPlace()
    {
        Register(1, incarnation: 5);
        Register(1, incarnation: 4);
        Apply(new MetaCommand(CommandKind.RegisterNode) { Node = new NodeId(1), Incarnation = 5, Nonce = 99 });
        Assert.Equal(new MetaNode(5, 50), View.Node(new NodeId(1)));
        Register(1, incarnation: 6);
        Assert.Equal(new MetaNode(6, 60), View.Node(new NodeId(1)));
        Assert.Equal(default, View.Node(new NodeId(2)));
    }

    [Fact]
    public void AMajorityOfPledgesClosesTheEpoch()
    {
        RegisterAll();
        Pledge(1, number: 1);
        Pledge(1, number: 2);
        Assert.Equal(1UL, View.Group(s_group).Epoch.Value);
        _state.BeginEntry(default, new ClusterTime(12_345));
        Pledge(3, number: 1);
        MetaGroup next = View.Group(s_group);
        Assert.Equal(
            (new Epoch(2), new ClusterTime(12_345), StateLimits.LeaseCeilingMsDefault),
            (next.Epoch, next.Closed, next.CeilingBeforeMs));
        Assert.Empty(next.Pledges);
        Assert.Equal(1UL, View.Group(GroupId.Of(0, isEphemeral: true)).Epoch.Value);
    }

    [Fact]
    public void APledgeForAClosedEpochOrOfAnOlderStartIsNotTaken()
    {
        RegisterAll();
        Pledge(1, number: 1, epoch: 2);
        Pledge(2, number: 1, incarnation: 9);
        Register(3, incarnation: 8);
        Pledge(3, number: 1, incarnation: 7);
        Assert.Empty(View.Group(s_group).Pledges);
    }

    [Fact]
    public void APledgeOfANodeThatDoesNotVoteDoesNotCount()
    {
        RegisterAll();
        Register(4, incarnation: 7);
        Pledge(4, number: 1);
        Pledge(1, number: 1);
        Assert.Equal(1UL, View.Group(s_group).Epoch.Value);
    }

    [Fact]
    public void AReleasedNumberIsNeverTakenAgain()
    {
        RegisterAll();
        Pledge(1, number: 3);
        Release(1, number: 3);
        Assert.False(View.Group(s_group).PledgeOf(new NodeId(1)).IsActive);
        Pledge(1, number: 3);
        Pledge(1, number: 2);
        Assert.False(View.Group(s_group).PledgeOf(new NodeId(1)).IsActive);
        Pledge(1, number: 4);
        Assert.True(View.Group(s_group).PledgeOf(new NodeId(1)).IsActive);
    }

    [Fact]
    public void ANumberThatIsGivenBackBeforeItArrivesIsNeverTaken()
    {
        RegisterAll();
        Release(1, number: 5);
        Pledge(1, number: 5);
        Pledge(2, number: 1);
        Assert.Equal(1UL, View.Group(s_group).Epoch.Value);
    }

    [Fact]
    public void TheCeilingIsRaisedAndNeverLowered()
    {
        Apply(new MetaCommand(CommandKind.RaiseCeiling) { Group = s_group, Epoch = new Epoch(1), Number = 90_000 });
        Apply(new MetaCommand(CommandKind.RaiseCeiling) { Group = s_group, Epoch = new Epoch(1), Number = 70_000 });
        Apply(new MetaCommand(CommandKind.RaiseCeiling) { Group = s_group, Epoch = new Epoch(2), Number = 99_000 });
        Assert.Equal(90_000, View.Group(s_group).CeilingMs);
        RegisterAll();
        Pledge(1, number: 1);
        Pledge(2, number: 1);
        Assert.Equal(
            (StateLimits.LeaseCeilingMsDefault, 90_000L),
            (View.Group(s_group).CeilingMs, View.Group(s_group).CeilingBeforeMs));
    }

    [Fact]
    public void LeasesOfAnEpochThatWasLostBeforeTheLastOneCountToo()
    {
        Apply(new MetaCommand(CommandKind.RaiseCeiling) { Group = s_group, Epoch = new Epoch(1), Number = 3_600_000 });
        RegisterAll();
        _state.BeginEntry(default, new ClusterTime(100_000));
        Pledge(1, number: 1);
        Pledge(2, number: 1);
        Assert.Equal(3_600_000, View.Group(s_group).CeilingBeforeMs);
        _state.BeginEntry(default, new ClusterTime(160_000));
        Pledge(1, number: 2, epoch: 2);
        Pledge(2, number: 2, epoch: 2);
        Assert.Equal((3UL, 3_540_000L), (View.Group(s_group).Epoch.Value, View.Group(s_group).CeilingBeforeMs));
        _state.BeginEntry(default, new ClusterTime(5_000_000));
        Pledge(1, number: 3, epoch: 3);
        Pledge(2, number: 3, epoch: 3);
        Assert.Equal(
            (new Epoch(4), StateLimits.LeaseCeilingMsDefault),
            (View.Group(s_group).Epoch, View.Group(s_group).CeilingBeforeMs));
    }

    [Fact]
    public void TheRecordsAreAStateLikeAnyOther()
    {
        RegisterAll();
        Pledge(1, number: 1);
        Assert.Equal(_state.Digest, _state.RecomputeDigest());
        using StateView view = _state.ViewAll();
        StateLoader loader = new(new StateLimits(), view.Summary);
        ViewSlice slice = new(1024);
        while (view.TryTake(slice, 1))
        {
        }

        ReadOnlySpan<byte> rest = slice.Rows.Written;
        while (RowImage.TryTake(ref rest, out RowImage record))
        {
            loader.Add(record.Bytes);
        }

        MetaView loaded = loader.Finish().Meta.View();
        Assert.Equal(View.Node(new NodeId(2)), loaded.Node(new NodeId(2)));
        Assert.True(loaded.Group(s_group).PledgeOf(new NodeId(1)).IsActive);
        Assert.Equal(View.Voters, loaded.Voters);
    }

    private void RegisterAll()
    {
        for (ushort node = 1; node <= 3; node++)
        {
            Register(node, incarnation: 7);
        }
    }

    private void Register(ushort node, ulong incarnation) =>
        Apply(new MetaCommand(CommandKind.RegisterNode)
        {
            Node = new NodeId(node),
            Incarnation = incarnation,
            Nonce = incarnation * 10,
        });

    private void Pledge(ushort node, ulong number, ulong epoch = 1, ulong incarnation = 7) =>
        Say(CommandKind.Pledge, node, number, epoch, incarnation);

    private void Release(ushort node, ulong number) => Say(CommandKind.ReleasePledge, node, number, 1, 7);

    private void Say(CommandKind kind, ushort node, ulong number, ulong epoch, ulong incarnation) =>
        Apply(new MetaCommand(kind)
        {
            Node = new NodeId(node),
            Incarnation = incarnation,
            Group = s_group,
            Epoch = new Epoch(epoch),
            Number = number,
        });

    /// <summary>As it comes out of the log.</summary>
    private void Apply(MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        _state.Apply(decoded, null);
        bytes.Return();
    }
}
