using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>The entry's feature level alone decides what a command does; builds of both kinds agree on it.</summary>
public sealed class FeatureGateTests
{
    private static readonly FeatureLevel s_test = FeatureLevels.Test;

    private readonly StateMachine _released = new(new StateLimits());
    private readonly StateMachine _raised = new(new StateLimits { Features = FeatureLevels.SupportedInTest });

    [Fact]
    public void Entries_of_a_lower_level_are_applied_alike_by_a_raised_build()
    {
        for (ulong i = 1; i <= 20; i++)
        {
            _released.BeginEntry(new LogIndex(i), new ClusterTime((long)i), FeatureLevel.First);
            _raised.BeginEntry(new LogIndex(i), new ClusterTime((long)i), FeatureLevel.First);
            Assert.Equal(OutcomeStatus.Applied, Apply(_released, Set(i)));
            Assert.Equal(OutcomeStatus.Applied, Apply(_raised, Set(i)));
            Assert.Equal(_released.Digest, _raised.Digest);
        }
    }

    [Fact]
    public void A_change_of_Apply_begins_with_the_level_of_the_entry()
    {
        StateMachine other = new(new StateLimits { Features = FeatureLevels.SupportedInTest });
        _raised.BeginEntry(new LogIndex(1), new ClusterTime(1), s_test);
        other.BeginEntry(new LogIndex(1), new ClusterTime(1), FeatureLevel.First);
        Apply(_raised, Set(1));
        Apply(other, Set(1));
        Assert.NotEqual(other.Digest, _raised.Digest);
        Assert.Equal(_raised.RecomputeDigest(), _raised.Digest);
    }

    [Fact]
    public void A_command_above_the_level_of_its_entry_is_unimplemented_on_every_build()
    {
        Command probe = new() { Kind = CommandKind.FeatureProbe, Durability = Durability.Persistent };
        Assert.Equal(s_test, CommandKinds.Of(CommandKind.FeatureProbe).Since);
        foreach (StateMachine state in new[] { _released, _raised })
        {
            ulong before = state.Digest;
            state.BeginEntry(new LogIndex(1), new ClusterTime(1), FeatureLevel.First);
            Assert.Equal(OutcomeStatus.Unimplemented, Apply(state, probe));
            Assert.Equal(before, state.Digest);
        }

        _raised.BeginEntry(new LogIndex(2), new ClusterTime(2), s_test);
        Assert.Equal(OutcomeStatus.Applied, Apply(_raised, probe));
        Assert.NotEqual(_released.Digest, _raised.Digest);
    }

    [Fact]
    public void The_level_of_a_loaded_state_is_that_of_its_last_entry()
    {
        AppliedState applied = new(_raised, new LogIndex(7), new Term(1), s_test);
        Assert.Equal(s_test, _raised.Level);
        applied.Advance(new LogIndex(8), new Term(1), s_test);
        Assert.Throws<InvariantException>(
            () => applied.Advance(new LogIndex(9), new Term(1), FeatureLevel.First));
    }

    [Fact]
    public void The_register_ascends_from_level_1_without_gaps()
    {
        int next = 1;
        foreach (FeatureLevelRow row in FeatureLevels.Rows)
        {
            Assert.Equal(next++, row.Level.Value);
            Assert.NotEmpty(row.Title);
        }

        Assert.Equal(next - 1, FeatureLevels.Newest.Value);
        Assert.Equal(next, FeatureLevels.Test.Value);
        Assert.False(FeatureLevels.Supported.Contains(FeatureLevels.Test));
        foreach (CommandKind kind in Enum.GetValues<CommandKind>().Where(kind => kind != CommandKind.FeatureProbe))
        {
            Assert.True(CommandKinds.Of(kind).Since <= FeatureLevels.Newest, $"{kind} is above every release");
        }
    }

    [Theory]
    [InlineData(1, 1, true)]
    [InlineData(1, 65535, true)]
    [InlineData(65535, 65535, true)]
    [InlineData(0, 1, false)]
    [InlineData(0, 0, false)]
    [InlineData(3, 2, false)]
    [InlineData(65535, 1, false)]
    public void A_hostile_range_is_none(ushort min, ushort max, bool isRange)
    {
        byte[] bytes = [(byte)min, (byte)(min >> 8), (byte)max, (byte)(max >> 8)];
        Assert.Equal(isRange, FeatureRange.TryRead(bytes, out FeatureRange range));
        if (isRange)
        {
            Assert.Equal((min, max), ((ushort)range.Min.Value, (ushort)range.Max.Value));
            byte[] again = new byte[FeatureRange.Bytes];
            range.Write(again);
            Assert.Equal(bytes, again);
        }
        else
        {
            Assert.Equal(default, range);
        }
    }

    private static Command Set(ulong number) => new()
    {
        Kind = CommandKind.Set,
        Durability = Durability.Persistent,
        Key = BitConverter.GetBytes(number),
        Value = "v"u8,
    };

    private static OutcomeStatus Apply(StateMachine state, scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        state.Apply(in command, buffer);
        Assert.True(Outcome.TryRead(buffer.Written, out Outcome outcome));
        return outcome.Status;
    }
}
