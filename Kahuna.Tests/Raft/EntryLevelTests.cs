using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Entries carry the feature level under which they were proposed. A leader never stamps less than its log has had, and
/// a follower takes no entry of a level above its own.
/// </summary>
public sealed class EntryLevelTests
{
    private static readonly FeatureLevel s_two = new(2);
    private static readonly FeatureLevel s_three = new(3);

    [Fact]
    public void Level_1_has_the_bytes_of_the_format_before()
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        EntryCodec.Write(buffer, new Term(7), EntryKind.Check, "abc"u8);
        Assert.Equal("07000000000000000300000003000000616263", Convert.ToHexString(buffer.Written));
        buffer.Length = 0;
        EntryCodec.Write(buffer, new Term(7), EntryKind.Check, "abc"u8, new FeatureLevel(0x0203));
        Assert.Equal("07000000000000000302020003000000616263", Convert.ToHexString(buffer.Written));
        ReadOnlySpan<byte> rest = buffer.Written;
        Assert.True(EntryCodec.TryRead(
            ref rest, out Term term, out EntryKind kind, out FeatureLevel level, out ReadOnlySpan<byte> payload));
        Assert.Equal((7UL, EntryKind.Check, 0x0203, 3), (term.Value, kind, level.Value, payload.Length));
        Assert.True(rest.IsEmpty);
    }

    [Theory]
    [InlineData(0, 1, true)]
    [InlineData(3, 1, true)]
    [InlineData(4, 1, false)]
    [InlineData(255, 1, false)]
    [InlineData(4, 65536, true)]
    [InlineData(3, 65536, true)]
    public void An_unknown_kind_is_an_entry_only_with_an_unknown_level(byte kind, int level, bool isEntry)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        EntryCodec.Write(buffer, new Term(1), (EntryKind)kind, "x"u8, new FeatureLevel(level));
        ReadOnlySpan<byte> rest = buffer.Written;
        Assert.Equal(isEntry, EntryCodec.TryRead(ref rest, out _, out _, out _));
        buffer.Array[11] = 1;
        rest = buffer.Written;
        Assert.False(EntryCodec.TryRead(ref rest, out _, out _, out _));
    }

    [Fact]
    public void A_leader_stamps_what_it_knows_or_its_log_has_had()
    {
        RaftCore core = Core(levelMax: 3, applied: s_two);
        core.Campaign();
        Settle(core);
        Assert.Equal(s_two, LevelOf(core, core.LastIndex));
        core.RaiseLevel(FeatureLevel.First);
        core.TryPropose(EntryKind.Commands, "a"u8, out LogIndex index);
        Assert.Equal(s_two, LevelOf(core, index));
        core.RaiseLevel(s_three);
        core.TryPropose(EntryKind.Commands, "b"u8, out index);
        Assert.Equal(s_three, LevelOf(core, index));
    }

    [Fact]
    public void A_restored_log_counts()
    {
        ByteBuffer entries = ByteBuffer.Rent();
        EntryCodec.Write(entries, new Term(1), EntryKind.Commands, "a"u8, s_three);
        RaftCore core = new(
            Config([new NodeId(1)], levelMax: 3),
            new RaftStart(
                new HardState(new Term(1), default, default),
                [new TermRun(new LogIndex(1), new Term(1))],
                new LogIndex(1),
                default));
        core.Restore(new LogIndex(1), entries.Written);
        core.Campaign();
        Settle(core);
        Assert.Equal(s_three, LevelOf(core, core.LastIndex));
    }

    [Fact]
    public void An_append_above_the_own_level_is_neither_stored_nor_answered()
    {
        RaftCore core = new(
            Config([new NodeId(1), new NodeId(2), new NodeId(3)], levelMax: 2),
            new RaftStart(default, [], default, default));
        Append(core, 0, (1, 1), (1, 2));
        Assert.Null(core.UnknownLevel);
        Assert.Equal(2UL, core.LastIndex.Value);
        Settle(core);
        Append(core, 2, (1, 2), (1, 3));
        Assert.Equal(s_three, core.UnknownLevel);
        Assert.Equal(2UL, core.LastIndex.Value);
        Assert.Equal(s_two, core.Level);
        core.PrepareReady();
        Assert.DoesNotContain(
            core.TakeReady().Messages.ToArray(), static sent => sent.Message.Kind == RaftMessageKind.AppendReply);
        core.Advance();
    }

    private static void Append(RaftCore core, ulong previous, params (ulong Term, int Level)[] entries)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        foreach ((ulong term, int level) in entries)
        {
            EntryCodec.Write(buffer, new Term(term), EntryKind.Commands, "x"u8, new FeatureLevel(level));
        }

        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = new NodeId(2),
                To = new NodeId(1),
                Term = new Term(1),
                Index = new LogIndex(previous),
                LogTerm = new Term(previous == 0 ? 0UL : 1UL),
                EntryCount = entries.Length,
            },
            buffer.Written);
    }

    private static RaftCore Core(int levelMax, FeatureLevel applied) => new(
        Config([new NodeId(1)], levelMax), new RaftStart(default, [], default, default) { Level = applied });

    private static RaftConfig Config(NodeId[] voters, int levelMax) => new()
    {
        Self = new NodeId(1),
        Group = new GroupId(1),
        Voters = voters,
        Seed = 1,
        LevelMax = new FeatureLevel(levelMax),
    };

    private static void Settle(RaftCore core)
    {
        for (int i = 0; i < 5 && core.PrepareReady(); i++)
        {
            Ready ready = core.TakeReady();
            RaftMessage[] own =
                [
                    .. ready.Messages
                        .ToArray()
                        .Select(static sent => sent.Message)
                        .Where(static sent => sent.To.Value == 1),
                ];
            core.Advance();
            core.Persisted(core.LastIndex, core.LastIndex.Value == 0 ? default : core.TermOf(core.LastIndex));
            foreach (RaftMessage message in own)
            {
                core.Step(message, []);
            }
        }
    }

    private static FeatureLevel LevelOf(RaftCore core, LogIndex index)
    {
        core.Payload(index, out _, out _, out FeatureLevel level);
        return level;
    }
}
