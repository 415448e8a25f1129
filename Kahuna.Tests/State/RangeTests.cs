using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>Pages of keys are what a sorted list of the keys that exist says.</summary>
public sealed class RangeTests
{
    private readonly StateDriver _state = new();

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void Pages_hold_what_is_there(int seed)
    {
        Random random = new(seed);
        SortedDictionary<string, (string? Value, long Revision)> model = new(StringComparer.Ordinal);
        for (int step = 0; step < 4_000; step++)
        {
            string key = $"{(char)('a' + random.Next(3))}/{random.Next(random.Next(2) == 0 ? 10 : 400)}";
            if (random.Next(4) == 0)
            {
                _state.Delete(key);
                model.Remove(key);
            }
            else
            {
                string? value = random.Next(10) == 0 ? null : new string('v', random.Next(60));
                model[key] = (value, _state.Set(key, value).Revision);
            }

            if (step % 100 == 0)
            {
                string start = random.Next(3) == 0 ? "" : $"{(char)('a' + random.Next(3))}/{random.Next(9)}";
                string? end = random.Next(3) == 0 ? null : start + (char)random.Next('/', 'z');
                RangeFlags flags = random.Next(2) == 0 ? RangeFlags.None : RangeFlags.Descending;
                IEnumerable<string> expected = model
                    .Where(entry => string.CompareOrdinal(entry.Key, start) >= 0
                        && (end is null || string.CompareOrdinal(entry.Key, end) < 0))
                    .Select(static entry => $"{entry.Key} {entry.Value.Value ?? "null"} {entry.Value.Revision}");
                expected = flags == RangeFlags.None ? expected : expected.Reverse();
                Assert.Equal(expected, ReadAll(start, end, flags, random.Next(1, 40)));
            }
        }
    }

    [Fact]
    public void Expired_and_deleted_keys_are_not_there()
    {
        _state.Set("a", "1");
        _state.Set("b", "2", CommandFlags.None, ttlMs: 100);
        _state.Set("c", "3");
        _state.Set("d", "4", CommandFlags.None, ttlMs: 200);
        _state.Delete("c");
        Assert.Equal(["a 1 1", "b 2 1", "d 4 1"], ReadAll("", null, RangeFlags.None, 10));
        _state.Now += 150;
        Assert.Equal(["a 1 1", "d 4 1"], ReadAll("", null, RangeFlags.None, 10));
        Assert.Equal(["d  1", "a  1"], ReadAll("", null, RangeFlags.Descending | RangeFlags.KeysOnly, 1));
    }

    [Fact]
    public void A_page_is_bounded_in_rows_and_bytes_and_says_where_to_go_on()
    {
        for (int i = 0; i < 2 * RangeReader.RowsPerPage; i++)
        {
            _state.Set($"gone/{i:000000}", "x");
            _state.Delete($"gone/{i:000000}");
        }

        _state.Set("last", new string('y', 3 * RangeReader.BytesPerPage));
        _state.Set("later", "z");
        (RangeFlags, int) asked = (RangeFlags.None, 10);
        byte[] first = Page("", null, asked);
        Assert.True(RangePage.TryRead(first, out RangePage page));
        Assert.True(page.HasMore);
        Assert.Equal(0, page.Count);
        Assert.InRange(first.Length, 1, 100);
        string last = Encoding.UTF8.GetString(page.Last);
        Assert.StartsWith("gone/", last, StringComparison.Ordinal);

        // A large value is a page of its own, and the next key is on the next one.
        Assert.True(RangePage.TryRead(Page("h", null, asked), out page));
        Assert.Equal((1, true), (page.Count, page.HasMore));
        Assert.Equal(2, ReadAll("", null, RangeFlags.None, 10).Count);
        Assert.True(RangePage.TryRead(Page("", null, (RangeFlags.CountOnly, 1)), out page));
        Assert.True(page.HasMore);
    }

    [Fact]
    public void A_loaded_state_has_the_same_order()
    {
        foreach (string key in new[] { "b", "a", "ab", "c", "aa" })
        {
            _state.Set(key, key);
        }

        _state.Delete("c");
        StateDriver loaded = _state.Reloaded(new());
        Assert.Equal(
            ReadAll("", null, RangeFlags.None, 2), new RangeTests(loaded).ReadAll("", null, RangeFlags.None, 2));
    }

    public RangeTests()
    {
    }

    private RangeTests(StateDriver state) => _state = state;

    private List<string> ReadAll(string start, string? end, RangeFlags flags, int limit)
    {
        List<string> found = [];
        RangeFlags also = RangeFlags.None;
        for (int pages = 0; pages < 100_000; pages++)
        {
            Assert.True(RangePage.TryRead(Page(start, end, (flags | also, limit)), out RangePage page));
            int count = 0;
            while (page.TryNext())
            {
                count++;
                string value = page.Entry.IsNull ? "null" : Encoding.UTF8.GetString(page.Entry.Value);
                found.Add($"{Encoding.UTF8.GetString(page.Entry.Key)} {value} {page.Entry.Revision}");
            }

            Assert.Equal(count, page.Count);
            Assert.InRange(count, 0, limit);
            if (!page.HasMore)
            {
                return found;
            }

            string last = Encoding.UTF8.GetString(page.Last);
            (start, end, also) = (flags & RangeFlags.Descending) == 0
                ? (last, end, RangeFlags.AfterStart)
                : (start, last, RangeFlags.None);
        }

        throw new InvalidOperationException("The pages do not end.");
    }

    private byte[] Page(string start, string? end, (RangeFlags Flags, int Limit) asked)
    {
        Command command = new()
        {
            Kind = CommandKind.KeyRange,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number | CommandFlags.AtRevision | (end is null ? 0 : CommandFlags.IfValue),
            Key = Encoding.UTF8.GetBytes(start),
            ComparedValue = Encoding.UTF8.GetBytes(end ?? ""),
            AtRevision = RangeRequest.Options(asked.Limit, asked.Flags),
        };
        ByteBuffer bytes = ByteBuffer.Rent();
        _state.Machine.BeginEntry(new LogIndex(_state.Index), new ClusterTime(_state.Now));
        _state.Machine.Read(in command, new ClusterTime(_state.Now), bytes);
        Assert.True(Outcome.TryRead(bytes.Written, out Outcome outcome));
        Assert.Equal(OutcomeStatus.Found, outcome.Status);
        byte[] page = outcome.Value.ToArray();
        bytes.Return();
        return page;
    }
}
