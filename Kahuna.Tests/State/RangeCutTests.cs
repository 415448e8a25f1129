using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>A cut shows its range as it was when it was opened, whatever happens to the keys afterwards.</summary>
public sealed class RangeCutTests
{
    private readonly StateDriver _state = new(new StateLimits { HistoryAgeMs = 300, HistoryPerKey = 2 });
    private readonly CutBudget _budget = new();

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(4)]
    public void Pages_show_the_moment_of_the_cut(int seed)
    {
        Random random = new(seed);
        List<(RangeCut Cut, string Start, string? End, List<string> Expected)> cuts = [];
        for (int step = 0; step < 6_000; step++)
        {
            Change(random);
            if (random.Next(40) == 0 && cuts.Count < 5)
            {
                string start = random.Next(3) == 0 ? "" : Key(random);
                string? end = random.Next(3) == 0 ? null : start + (char)random.Next('0', 'z');
                RangeCut cut = Open(start, end);
                List<string> expected = ReadAll(null, start, end, RangeFlags.None, 1_000);
                Assert.Equal(expected, ReadAll(cut, start, end, RangeFlags.None, 1_000));
                cuts.Add((cut, start, end, expected));
            }

            if (cuts.Count > 0 && random.Next(20) == 0)
            {
                int i = random.Next(cuts.Count);
                (RangeCut cut, string start, string? end, List<string> expected) = cuts[i];
                bool descends = random.Next(2) == 0;
                Assert.Equal(
                    descends ? Enumerable.Reverse(expected) : expected,
                    ReadAll(
                        cut, start, end, descends ? RangeFlags.Descending : RangeFlags.None, random.Next(1, 40)));
                if (random.Next(4) == 0)
                {
                    cut.Dispose();
                    cuts.RemoveAt(i);
                }
            }
        }

        foreach ((RangeCut cut, _, _, _) in cuts)
        {
            cut.Dispose();
        }

        Assert.Equal(0, _budget.Used);
    }

    [Fact]
    public void A_key_that_was_added_later_is_not_shown()
    {
        _state.Set("b", "1");
        using RangeCut cut = Open("", null);
        _state.Set("a", "2");
        _state.Set("c", "3");
        Assert.Equal(["b 1 1"], ReadAll(cut, "", null, RangeFlags.None, 10));
    }

    [Fact]
    public void A_key_that_was_forgotten_is_shown_also_when_its_row_stands_for_another_key()
    {
        _state.Set("b", "1");
        _state.Set("d", "2");
        using RangeCut cut = Open("", null);
        Forget("b");
        _state.Set("c", "in its row");
        Assert.Equal(["b 1 1", "d 2 1"], ReadAll(cut, "", null, RangeFlags.None, 1));
        Assert.Equal(["d 2 1", "b 1 1"], ReadAll(cut, "", null, RangeFlags.Descending, 1));

        // The same name again, in another row.
        _state.Set("b", "again");
        Assert.Equal(["b 1 1", "d 2 1"], ReadAll(cut, "", null, RangeFlags.None, 1));
        Forget("d");
        Assert.Equal(["b 1 1", "d 2 1"], ReadAll(cut, "", null, RangeFlags.None, 1));
    }

    [Fact]
    public void What_expires_later_is_shown_and_what_had_expired_is_not()
    {
        _state.Set("a", "1", ttlMs: 100);
        _state.Set("b", "2", ttlMs: 1_000);
        _state.Now += 200;
        Assert.Equal(["b 2 1"], ReadAll(null, "", null, RangeFlags.None, 10));
        using RangeCut cut = Open("", null);
        _state.Now += 2_000;
        Assert.Equal(["b 2 1"], ReadAll(cut, "", null, RangeFlags.None, 10));
        _state.Sweep(10);
        Assert.Equal(["b 2 1"], ReadAll(cut, "", null, RangeFlags.None, 10));
        Assert.Empty(ReadAll(null, "", null, RangeFlags.None, 10));
    }

    [Fact]
    public void It_is_current_until_something_of_its_range_changes()
    {
        _state.Set("b", "1");
        _state.Set("x", "1", ttlMs: 5_000);
        using RangeCut cut = Open("b", "c");
        _state.Set("a", "2");
        _state.Set("c", "2");
        _state.Set("a", "3");
        Assert.True(cut.IsCurrent(_state.Machine.Time));
        using RangeCut written = Open("b", "c");
        _state.Set("b", "2");
        Assert.False(written.IsCurrent(_state.Machine.Time));
        using RangeCut added = Open("b", "c");
        _state.Set("b/new", "2");
        Assert.False(added.IsCurrent(_state.Machine.Time));
        using RangeCut deleted = Open("b", "c");
        _state.Delete("b/new");
        Assert.False(deleted.IsCurrent(_state.Machine.Time));
    }

    [Fact]
    public void It_is_not_current_once_a_key_has_expired_for_readers()
    {
        _state.Set("b", "1", ttlMs: 1_000);
        using RangeCut cut = Open("b", "c");
        _state.Now += 500;
        _state.Set("z", "1");
        Assert.True(cut.IsCurrent(_state.Machine.Time));
        _state.Now += 1_000;
        _state.Set("z", "1");
        Assert.False(cut.IsCurrent(_state.Machine.Time));
    }

    [Fact]
    public void Pre_images_are_bounded_and_the_cut_ends_past_the_bound()
    {
        CutBudget budget = new(cutBytesMax: 200_000, bytesMax: 300_000);
        for (int i = 0; i < 40; i++)
        {
            _state.Set($"k/{i:00}", new string('v', 10_000));
        }

        RangeCut one = Open("", null, budget: budget);
        RangeCut other = Open("", null, budget: budget);
        RangeCut keysOnly = Open("", null, RangeFlags.KeysOnly, budget);
        RangeCut outside = Open("z", null, budget: budget);
        long most = 0;
        for (int i = 0; i < 40; i++)
        {
            _state.Set($"k/{i:00}", "short");
            most = Math.Max(most, budget.Used);
        }

        Assert.InRange(most, 200_000, 300_000);
        Assert.True(one.IsOver || other.IsOver);
        Assert.False(keysOnly.IsOver);
        Assert.False(outside.IsOver);
        Assert.Equal(40, ReadAll(keysOnly, "", null, RangeFlags.KeysOnly, 7).Count);
        foreach (RangeCut cut in new[] { one, other, keysOnly, outside })
        {
            cut.Dispose();
        }

        Assert.Equal(0, budget.Used);
    }

    [Fact]
    public void Keys_that_come_and_go_are_counted_too()
    {
        CutBudget budget = new(cutBytesMax: 50_000);
        using RangeCut cut = Open("", null, budget: budget);
        for (int i = 0; i < 1_000; i++)
        {
            _state.Set($"k/{i:0000}", "v");
        }

        Assert.True(cut.IsOver);
        Assert.Equal(0, budget.Used);
    }

    [Theory]
    [InlineData("b", "d", false, true)]
    [InlineData("b/1", "c", true, true)]
    [InlineData("a", "d", false, false)]
    [InlineData("b", "e", false, false)]
    [InlineData("b", null, false, false)]
    public void It_covers_pages_within_its_range(string start, string? end, bool descends, bool covers)
    {
        RangeFlags flags = descends ? RangeFlags.Descending : RangeFlags.None;
        using RangeCut cut = Open("b", "d");
        using RangeCut keysOnly = Open("b", "d", RangeFlags.KeysOnly);
        Command page = Range(start, end, flags, 10);
        Command withoutValues = Range(start, end, flags | RangeFlags.KeysOnly, 10);
        Assert.Equal(covers, cut.Covers(new RangeRequest(in page)));
        Assert.False(keysOnly.Covers(new RangeRequest(in page)));
        Assert.Equal(covers, keysOnly.Covers(new RangeRequest(in withoutValues)));
    }

    private void Change(Random random)
    {
        _state.Now += random.Next(4);
        string key = Key(random);
        switch (random.Next(12))
        {
            case 0:
                _state.Delete(key, CommandFlags.WithoutHistory);
                break;
            case 1 or 2:
                _state.Delete(key);
                break;
            case 3:
                Evict(key);
                break;
            case 4:
                _state.Set(key, "ttl", ttlMs: random.Next(1, 200));
                break;
            case 5:
                _state.Extend(key, random.Next(200));
                break;
            case 6:
                _state.Sweep(3);
                break;
            default:
                _state.Set(key, random.Next(10) == 0 ? null : new string('v', random.Next(60)));
                break;
        }
    }

    private static string Key(Random random) => $"{(char)('a' + random.Next(3))}/{random.Next(60)}";

    private void Forget(string key)
    {
        _state.Delete(key, CommandFlags.WithoutHistory);
        _state.Now += 1_000;
        _state.Sweep(10);
        Assert.Equal(0, _state.Get(key).Revision);
    }

    private void Evict(string key) =>
        _state.Follow(new TestCommand(CommandKind.Evict, "", $"{(char)key.Length}\0{key}"));

    private RangeCut Open(
        string start, string? end, RangeFlags flags = RangeFlags.None, CutBudget? budget = null)
    {
        _state.Machine.BeginEntry(new LogIndex(_state.Index), new ClusterTime(_state.Now));
        Command command = Range(start, end, flags, 1);
        return _state.Machine.KeyValues.OpenCut(
            new RangeRequest(in command), _state.Machine.Time, budget ?? _budget);
    }

    private List<string> ReadAll(RangeCut? cut, string start, string? end, RangeFlags flags, int limit)
    {
        List<string> found = [];
        while (true)
        {
            Command command = Range(start, end, flags, limit);
            ByteBuffer bytes = ByteBuffer.Rent();
            _state.Machine.BeginEntry(new LogIndex(_state.Index), new ClusterTime(_state.Now));
            if (cut is null)
            {
                _state.Machine.Read(in command, new ClusterTime(_state.Now), bytes);
            }
            else
            {
                _state.Machine.KeyValues.ReadCut(cut, new RangeRequest(in command), bytes);
            }

            Assert.True(Outcome.TryRead(bytes.Written, out Outcome outcome));
            Assert.True(RangePage.TryRead(outcome.Value, out RangePage page));
            while (page.TryNext())
            {
                string value = page.Entry.IsNull ? "null" : Encoding.UTF8.GetString(page.Entry.Value);
                found.Add($"{Encoding.UTF8.GetString(page.Entry.Key)} {value} {page.Entry.Revision}");
            }

            string? last = page.HasMore ? Encoding.UTF8.GetString(page.Last) : null;
            bytes.Return();
            if (last is null)
            {
                return found;
            }

            (start, end, flags) = (flags & RangeFlags.Descending) == 0
                ? (last, end, flags | RangeFlags.AfterStart)
                : (start, last, flags);
        }
    }

    private static Command Range(string start, string? end, RangeFlags flags, int limit) => new()
    {
        Kind = CommandKind.KeyRange,
        Durability = Durability.Persistent,
        Flags = CommandFlags.Number | CommandFlags.AtRevision | (end is null ? 0 : CommandFlags.IfValue),
        Key = Encoding.UTF8.GetBytes(start),
        ComparedValue = Encoding.UTF8.GetBytes(end ?? ""),
        AtRevision = RangeRequest.Options(limit, flags),
    };
}
