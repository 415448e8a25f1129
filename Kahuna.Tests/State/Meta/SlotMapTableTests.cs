using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.State.Meta;

/// <summary>The meta group's map of slots: each version follows on the one that the move names.</summary>
public sealed class SlotMapTableTests
{
    private static readonly GroupId s_source = GroupId.Of(0, isEphemeral: true);

    private StateMachine _state = new(new StateLimits());

    [Fact]
    public void The_configuration_brings_the_initial_map()
    {
        Assert.Null(_state.Meta.View().Slots);
        Configure();
        Assert.Equal(SlotMap.Initial(4).Ranges(), Slots.Ranges());
        Assert.Equal((1UL, 4), (Slots.Version, Slots.Partitions));
    }

    [Fact]
    public void A_move_that_names_the_version_is_the_next_one()
    {
        Configure();
        Move(version: 1, target: 3, new SlotRange(5, 9, 0), new SlotRange(100, 100, 0));
        Assert.Equal((2UL, 3, 3, 0, 3), (Slots.Version, Slots[5], Slots[9], Slots[10], Slots[100]));
        Move(version: 1, target: 2, new SlotRange(5, 9, 0));
        Move(version: 3, target: 2, new SlotRange(5, 9, 0));
        Assert.Equal((2UL, 3), (Slots.Version, Slots[5]));
        Move(version: 2, target: 0, new SlotRange(5, 5, 0));
        Assert.Equal((3UL, 0, 3), (Slots.Version, Slots[5], Slots[6]));
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void A_move_to_no_partition_or_without_a_configuration_changes_nothing()
    {
        Move(version: 1, target: 1, new SlotRange(5, 9, 0));
        Configure();
        ulong digest = _state.Digest;
        Move(version: 1, target: 4, new SlotRange(5, 9, 0));
        Assert.Equal((1UL, digest), (Slots.Version, _state.Digest));
    }

    [Fact]
    public void A_release_of_a_closed_epoch_does_not_count()
    {
        Configure();
        Close(epoch: 1);
        Move(version: 1, target: 1, new SlotRange(5, 9, 0));
        Assert.Equal(1UL, Slots.Version);
        Move(version: 1, target: 1, epoch: 2, new SlotRange(5, 9, 0));
        Assert.Equal(2UL, Slots.Version);
    }

    [Fact]
    public void An_epoch_begins_with_the_map_of_its_beginning()
    {
        Configure();
        Close(epoch: 1);
        Assert.Null(_state.Meta.View().SlotsOfEpoch(s_source));
        Move(version: 1, target: 1, epoch: 2, new SlotRange(5, 9, 0));
        Assert.Null(_state.Meta.View().SlotsOfEpoch(s_source));
        Close(epoch: 2);
        Move(version: 2, target: 2, epoch: 3, new SlotRange(6, 6, 0));
        SlotMap begun = _state.Meta.View().SlotsOfEpoch(s_source)!;
        Assert.Equal((2UL, 1), (begun.Version, begun[6]));
        Assert.Null(_state.Meta.View().SlotsOfEpoch(GroupId.Of(1, isEphemeral: true)));
    }

    [Fact]
    public void A_store_without_the_map_has_the_first_version()
    {
        byte[] configuration = [4, 0, 0, 0, 1, 0];
        KeyStore store = new(new StateLimits());
        byte[] name = SystemRowKind.Configuration.ToName();
        store.Create(name, store.Keys.HashOf(name), configuration, isNull: false);
        _state = new StateMachine(store, time: default, new StateLimits());
        Assert.Equal((1UL, 4), (Slots.Version, Slots.Partitions));
        Move(version: 1, target: 3, new SlotRange(5, 9, 0));
        Assert.Equal((2UL, 3), (Slots.Version, Slots[7]));
    }

    [Fact]
    public void A_loaded_state_has_the_same_map()
    {
        Configure();
        Move(version: 1, target: 3, new SlotRange(5, 9, 0));
        Close(epoch: 1);
        using StateView view = _state.ViewAll();
        StateLoader loader = new(new StateLimits(), view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        MetaView loaded = loader.Finish().Meta.View();
        Assert.Equal((Slots.Version, 3), (loaded.Slots!.Version, loaded.Slots[5]));
        Assert.Equal(Slots.Ranges(), loaded.SlotsOfEpoch(s_source)!.Ranges());
    }

    [Fact]
    public void Malformed_moves_are_none()
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        new MetaCommand(CommandKind.MoveSlots) { Number = 1, Slots = [new SlotRange(1, 2, 0)] }.Write(bytes);
        byte[] good = bytes.Written.ToArray();
        Assert.NotNull(Read(good));
        Random random = new(5);
        for (int i = 0; i < 10_000; i++)
        {
            byte[] bad = [.. good];
            bad[random.Next(Command.HeaderBytes, bad.Length)] ^= (byte)(1 << random.Next(8));
            if (Read(bad) is { } read)
            {
                Assert.All(read.Slots, static range => Assert.InRange(range.Last, range.First, KeyRouting.Slots - 1));
            }
        }
    }

    private SlotMap Slots => _state.Meta.View().Slots!;

    private void Configure() => Apply(
        new MetaCommand(CommandKind.Configure) { Number = 4, Voters = [new NodeId(1), new NodeId(2), new NodeId(3)] });

    private void Move(ulong version, ulong target, params SlotRange[] slots) => Move(version, target, 1, slots);

    private void Move(ulong version, ulong target, ulong epoch, params SlotRange[] slots) =>
        Apply(new MetaCommand(CommandKind.MoveSlots)
        {
            MapVersion = version,
            Group = s_source,
            Epoch = new Epoch(epoch),
            Number = target,
            Slots = slots,
        });

    /// <summary>A majority gives up the epoch of the group that gives slots away.</summary>
    private void Close(ulong epoch)
    {
        for (ushort node = 1; node <= 2; node++)
        {
            MetaCommand start = new(CommandKind.RegisterNode) { Node = new NodeId(node), Incarnation = 7, Nonce = 1 };
            Apply(start);
            Apply(new MetaCommand(CommandKind.Pledge)
            {
                Node = new NodeId(node),
                Incarnation = 7,
                Group = s_source,
                Epoch = new Epoch(epoch),
                Number = 1,
            });
        }
    }

    private static MetaCommand? Read(byte[] bytes) =>
        Command.TryRead(bytes, out Command command) ? MetaCommand.Read(in command) : null;

    private void Apply(MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        Assert.Equal(command.Slots.Count, MetaCommand.Read(in decoded)!.Slots.Count);
        _state.Apply(in decoded, outcome: null);
        bytes.Return();
    }
}
