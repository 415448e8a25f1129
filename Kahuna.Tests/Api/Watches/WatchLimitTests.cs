using System.Globalization;
using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>The most that one stream can ask for, and what it is told then.</summary>
public sealed class WatchLimitTests
{
    private readonly LoggedChanges _changes = new(partitions: 1);

    private ChangeLog Log => _changes.Log(0);

    [Fact]
    public void A_stream_has_a_greatest_number_of_watches_and_a_change_of_all_of_them_is_one_frame()
    {
        WatchMemory memory = new();
        using WatchReader reader = new(_changes.Logs, memory);
        for (uint id = 1; id <= WatchRequests.WatchesMax; id++)
        {
            Begin(reader, id, "a");
        }

        Assert.Equal(WatchRequests.WatchesMax, Read(reader).Count);
        Begin(reader, WatchRequests.WatchesMax + 1, "a");
        Assert.Contains("131,072 watches, its limit", Assert.Single(Read(reader)).Text, StringComparison.Ordinal);
        Assert.Equal(WatchRequests.WatchesMax, memory.Watches);
        _changes.Set(Log, "a", "value");
        WatchSaid said = Assert.Single(Read(reader));
        Assert.Equal(WatchRequests.WatchesMax, said.Watches.Distinct().Count());
        reader.Dispose();
        Assert.Equal((0, 0L), (memory.Watches, memory.Bytes));
    }

    [Fact]
    public void The_watches_of_a_node_share_its_memory()
    {
        WatchMemory memory = new(bytesMax: 10_000);
        using WatchReader one = new(_changes.Logs, memory);
        using WatchReader other = new(_changes.Logs, memory);
        uint id = 0;
        WatchSaid said;
        do
        {
            Begin(++id % 2 == 0 ? one : other, id, new string('n', 100));
            said = Assert.Single(Read(id % 2 == 0 ? one : other));
        }
        while (said.Notice == WatchNoticeCode.Begun);
        Assert.Contains("take up 0 MiB, the limit", said.Text, StringComparison.Ordinal);
        Assert.Equal(16u, id - 1);
        Assert.Null(one.Take(new WatchRequest { Operation = WatchOperation.End, Id = 2 }));
        Begin(one, 2, "short");
        Assert.Equal("Begun 2", Assert.Single(Read(one)).Short);
    }

    [Fact]
    public void A_stream_that_goes_back_again_and_again_is_stopped()
    {
        for (int i = 0; i < 1_100; i++)
        {
            _changes.Set(Log, "b", "x");
        }

        using WatchReader reader = new(_changes.Logs);
        ByteBuffer frame = ByteBuffer.Rent();
        string refusal = "";
        for (uint id = 1; id <= 1_099 && refusal.Length == 0; id++)
        {
            Begin(reader, id, "a", ChangePoint.After(1, 0, 1_100 - id));
            frame.Length = 0;
            reader.Fill(frame, default);
            refusal = WatchSaid.ReadSent(frame.Written)[0].Text;
        }

        Assert.Contains("went back 1,024 times", refusal, StringComparison.Ordinal);

        // When it has caught up it may.
        Read(reader);
        Begin(reader, 5_000, "a", ChangePoint.After(1, 0, 1));
        Assert.Equal("Begun 5000", Assert.Single(Read(reader)).Short);
        frame.Return();
    }

    [Fact]
    public void A_reader_that_is_nearly_overtaken_is_told_once()
    {
        LoggedChanges changes = new(partitions: 1, bytes: 3 * 16 * ChangeLog.SegmentBytes);
        using WatchReader reader = new(changes.Logs);
        Begin(reader, 1, "");
        Read(reader);
        foreach (int count in (int[])[300, 80, 190, 190])
        {
            int lagging = 0;
            for (int i = 0; i < count; i++)
            {
                string key = i.ToString(CultureInfo.InvariantCulture);
                changes.Set(changes.Log(0), key, new string('x', 20_000));
                if (count == 300)
                {
                    lagging += Read(reader).Count(static each => each.Notice == WatchNoticeCode.Lagging);
                }
            }

            List<WatchSaid> said = Read(reader);
            lagging += said.Count(static each => each.Notice == WatchNoticeCode.Lagging);
            Assert.DoesNotContain(said, static each => each.Notice == WatchNoticeCode.Compacted);
            Assert.Equal(count == 190 ? 1 : 0, lagging);
        }
    }

    [Fact]
    public void A_frame_ends_at_its_size_and_values_are_left_out_when_nobody_wants_them()
    {
        using WatchReader with = new(_changes.Logs);
        using WatchReader without = new(_changes.Logs);
        Begin(with, 1, "");
        Begin(without, 1, "", withValues: false);
        Read(with);
        Read(without);
        for (int i = 0; i < 20; i++)
        {
            _changes.Set(Log, "k", new string('x', 20_000));
        }

        ByteBuffer frame = ByteBuffer.Rent();
        Assert.Equal(WatchFill.Frame, with.Fill(frame, default));
        Assert.InRange(frame.Length, Limits.FrameBytesTarget, Limits.FrameBytesTarget + 21_000);
        frame.Length = 0;
        Assert.Equal(WatchFill.Frame, without.Fill(frame, default));
        Assert.InRange(frame.Length, 20, 2_000);
        Assert.All(WatchSaid.ReadSent(frame.Written), static said => Assert.Equal(
            (WatchedChangeFlags.ValueLeftOut, ""), (said.Flags, said.Value)));
        frame.Return();
    }

    private static void Begin(
        WatchReader reader, uint id, string prefix, ChangePoint? from = null, bool withValues = true)
    {
        byte[] points = new byte[from is null ? 0 : ChangePoint.Bytes];
        from?.Write(points);
        Assert.Null(reader.Take(new WatchRequest
        {
            Operation = WatchOperation.Begin,
            Durability = Durability.Persistent,
            Scope = WatchScope.Prefix,
            Flags = withValues ? WatchFlags.WithValues : 0,
            Id = id,
            Points = points,
            Name = Encoding.UTF8.GetBytes(prefix),
        }));
    }

    private static List<WatchSaid> Read(WatchReader reader)
    {
        List<WatchSaid> all = [];
        ByteBuffer frame = ByteBuffer.Rent();
        while (reader.Fill(frame, new NodeTime(1)) != WatchFill.Nothing)
        {
            if (frame.Length > 0)
            {
                all.AddRange(WatchSaid.ReadSent(frame.Written).Where(
                    static said => said.Frame != Kahuna.Wire.Frames.FrameKind.Progress));
                frame.Length = 0;
            }
        }

        frame.Return();
        return all;
    }
}
