using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Meta;

/// <summary>
/// The meta group raises the feature level only when every voter's newest start supports the new one.
/// </summary>
public sealed class FeatureLevelRecordTests
{
    private readonly StateMachine _state = new(new StateLimits());

    private int Level => _state.Meta.View().FeatureLevel.Value;

    [Fact]
    public void All_voters_must_support_the_new_level()
    {
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
        Configure(1, 2, 3);
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
        Register(1, 1, 1, 2);
        Register(2, 1, 1, 2);
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
        Register(3, 1, 1, 1);
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
        Register(3, 2, 1, 2);
        Raise(from: 1, to: 2);
        Assert.Equal(2, Level);
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void A_node_that_has_come_back_with_an_earlier_version_prevents_it()
    {
        Configure(1, 2);
        Register(1, 1, 1, 2);
        Register(2, 1, 1, 2);
        Register(2, 2, 1, 1);
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
    }

    [Theory]
    [InlineData(1, 1)]
    [InlineData(1, 0)]
    [InlineData(1, 6)]
    [InlineData(1, 65536)]
    [InlineData(2, 3)]
    [InlineData(0, 2)]
    public void Other_raises_change_nothing(ulong from, ulong to)
    {
        Configure(1);
        Register(1, 1, 1, 5);
        ulong before = _state.Digest;
        Raise(from, to);
        Assert.Equal((1, before), (Level, _state.Digest));
    }

    [Fact]
    public void A_level_never_falls_and_may_be_skipped()
    {
        Configure(1);
        Register(1, 1, 1, 5);
        Raise(from: 1, to: 4);
        Assert.Equal(4, Level);
        Raise(from: 1, to: 2);
        Raise(from: 4, to: 3);
        Raise(from: 4, to: 4);
        Assert.Equal(4, Level);
        Raise(from: 4, to: 5);
        Assert.Equal(5, Level);
    }

    [Fact]
    public void A_level_below_the_lowest_of_a_voter_is_not_entered()
    {
        Configure(1, 2);
        Register(1, 1, 1, 3);
        Register(2, 1, 3, 4);
        Raise(from: 1, to: 2);
        Assert.Equal(1, Level);
        Raise(from: 1, to: 3);
        Assert.Equal(3, Level);
    }

    [Fact]
    public void A_start_at_level_1_alone_is_recorded_as_before()
    {
        Register(1, 7, 1, 1);
        Assert.Equal(new MetaNode(7, 70), _state.Meta.View().Node(new NodeId(1)));
        StateMachine before = new(new StateLimits());
        Apply(before, new MetaCommand(CommandKind.RegisterNode) { Node = new NodeId(1), Incarnation = 7, Nonce = 70 });
        Assert.Equal(before.Digest, _state.Digest);
    }

    [Theory]
    [InlineData(0xFFFF_0001_0000UL)]
    [InlineData(0x0001_0002UL)]
    [InlineData(0x0002_0000UL)]
    [InlineData(0x7FFF_FFFF_0000_0000UL)]
    public void A_malformed_range_counts_as_level_1_alone(ulong number)
    {
        Apply(_state, new MetaCommand(CommandKind.RegisterNode)
        {
            Node = new NodeId(1),
            Incarnation = 1,
            Nonce = 1,
            Number = number,
        });
        Assert.Equal(default, _state.Meta.View().Node(new NodeId(1)).Features);
    }

    private void Configure(params ushort[] voters) => Apply(_state, new MetaCommand(CommandKind.Configure)
    {
        Number = 4,
        Voters = [.. voters.Select(static id => new NodeId(id))],
    });

    private void Register(ushort node, ulong incarnation, int min, int max) =>
        Apply(_state, new MetaCommand(CommandKind.RegisterNode)
        {
            Node = new NodeId(node),
            Incarnation = incarnation,
            Nonce = incarnation * 10,
            Features = new FeatureRange(new FeatureLevel(min), new FeatureLevel(max)),
        });

    private void Raise(ulong from, ulong to) =>
        Apply(
            _state,
            new MetaCommand(CommandKind.RaiseFeatureLevel) { PresentLevel = from, Number = to });

    private static void Apply(StateMachine state, MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        state.Apply(in decoded, outcome: null);
    }
}
