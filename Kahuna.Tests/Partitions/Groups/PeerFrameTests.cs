using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions.Groups;

public sealed class PeerFrameTests
{
    private static readonly RaftMessage s_append = new()
    {
        Kind = RaftMessageKind.Append,
        Term = new Term(7),
        Index = new LogIndex(41),
        LogTerm = new Term(6),
        Commit = new LogIndex(40),
        Round = 3,
        Hint = new LogIndex(2),
        EntryCount = 1,
        Reject = true,
        Transfer = true,
    };

    [Fact]
    public void TheLayoutIsTheGoldenOne()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        int at = PeerFrame.BeginMessage(frame, new GroupId(9), s_append);
        EntryCodec.Write(frame, new Term(7), EntryKind.Commands, "abc"u8);
        PeerFrame.EndMessage(frame, at);
        Assert.Equal(
            "09000000" + "05" + "03" + "0000"
            + "0700000000000000"
                + "2900000000000000"
                + "0600000000000000"
                + "2800000000000000"
                + "0300000000000000"
                + "0200000000000000"
            + "01000000" + "13000000"
            + "0700000000000000" + "01000000" + "03000000" + "616263",
            Convert.ToHexStringLower(frame.Written));
        frame.Return();
    }

    [Fact]
    public void MessagesOfEphemeralGroupsSayWhichEpochAndWhichStart()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        GroupId group = GroupId.Of(0, isEphemeral: true);
        MessageStamp stamp = new(new Epoch(3), Incarnation: 0x0102);
        PeerFrame.EndMessage(frame, PeerFrame.BeginMessage(frame, new GroupId(1), s_append, stamp));
        int at = PeerFrame.BeginMessage(frame, group, s_append, stamp);
        frame.Append("abc"u8);
        PeerFrame.EndMessage(frame, at);
        Assert.Equal(
            "03000000" + "0300000000000000" + "0201000000000000" + "616263",
            Convert.ToHexStringLower(frame.Written[(at + 60)..]));

        ReadOnlySpan<byte> rest = frame.Written;
        Assert.True(PeerFrame.TryRead(ref rest, out _, out _, out MessageStamp none, out _));
        Assert.Equal(default, none);
        Assert.True(PeerFrame.TryRead(
            ref rest,
            out GroupId read,
            out RaftMessage message,
            out MessageStamp said,
            out ReadOnlySpan<byte> entries));
        Assert.Equal((group, stamp, 3), (read, said, entries.Length));
        Assert.Equal(s_append, message);
        Assert.True(rest.IsEmpty);
        rest = frame.Written[at..^4];
        Assert.False(PeerFrame.TryRead(ref rest, out _, out _, out _, out _));
        frame.Return();
    }

    [Fact]
    public void MessagesOfManyGroupsComeBackInOrder()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        for (uint i = 1; i <= 5; i++)
        {
            int at = PeerFrame.BeginMessage(frame, new GroupId(i), s_append with { Term = new Term(i) });
            frame.Append(new byte[i]);
            PeerFrame.EndMessage(frame, at);
        }

        ReadOnlySpan<byte> rest = frame.Written;
        for (uint i = 1; i <= 5; i++)
        {
            Assert.True(PeerFrame.TryRead(
                ref rest, out GroupId group, out RaftMessage message, out ReadOnlySpan<byte> entries));
            Assert.Equal((i, i, (int)i), (group.Value, (uint)message.Term.Value, entries.Length));
            Assert.Equal(s_append with { Term = new Term(i) }, message);
        }

        Assert.False(PeerFrame.TryRead(ref rest, out _, out _, out _));
        frame.Return();
    }

    [Fact]
    public void GarbageIsNoMessageAndNeverThrows()
    {
        Random random = new(5);
        for (int i = 0; i < 10_000; i++)
        {
            byte[] bytes = new byte[random.Next(0, 200)];
            random.NextBytes(bytes);
            ReadOnlySpan<byte> rest = bytes;
            while (PeerFrame.TryRead(ref rest, out _, out _, out _))
            {
            }
        }
    }
}
