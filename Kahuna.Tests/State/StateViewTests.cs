using System.Buffers.Binary;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State;

/// <summary>
/// A view hands out the state as it was when it began, whatever is applied meanwhile, and what is loaded from it goes
/// on like the original.
/// </summary>
public sealed class StateViewTests
{
    private static readonly StateLimits s_tight =
        new() { HistoryPerKey = 3, HistoryBytes = 4_000, HistoryAgeMs = 2_000 };

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void View_taken_in_steps_while_commands_go_on_is_the_state_at_its_beginning(int seed)
    {
        Random random = new(seed);
        StateDriver state = new(s_tight);
        for (int round = 0; round < 20; round++)
        {
            Run(random, state, 300);
            using StateView view = state.Machine.ViewAll();
            ulong digest = state.Machine.Digest;
            Dictionary<string, byte[]> records = [];
            while (Take(view, records, random.Next(1, 400)))
            {
                Run(random, state, random.Next(0, 8));
            }

            Assert.Equal(0, view.Left);
            Assert.Equal(view.Keys, records.Count);
            StateMachine loaded = Load(view.Summary, records.Values);
            Assert.Equal(digest, loaded.Digest);
            Assert.Equal(digest, loaded.RecomputeDigest());
            Assert.True(loaded.AccountsMatch);
            ulong sum = 0;
            Assert.All(records.Values, record =>
                Assert.True(KeyRecord.TryAddDigest(record, view.Summary.FirstHistoryNumber, ref sum)));
            Assert.Equal(digest, sum);
        }
    }

    [Fact]
    public void What_changes_before_its_turn_is_handed_on_in_chunks_and_each_record_once()
    {
        StateDriver state = new();
        for (int i = 0; i < 2_000; i++)
        {
            state.Set($"key/{i}", new string('v', i == 700 ? 300_000 : 500));
        }

        using StateView view = state.Machine.ViewAll();
        ulong digest = state.Machine.Digest;
        Dictionary<string, byte[]> records = [];
        bool more = true;
        for (int i = 1_999; i >= 0; i--)
        {
            state.Set($"key/{i}", "other");
            more = i % 100 != 0 || Take(view, records, 1_000);
            Assert.True(view.PreImageBytes < 500_000);
        }

        while (more)
        {
            more = Take(view, records, 1_000);
        }

        Assert.Equal(2_000, records.Count);
        Assert.Equal(0, view.PreImageBytes);
        Assert.Equal(digest, Load(view.Summary, records.Values).Digest);
    }

    [Fact]
    public void Loaded_state_goes_on_like_the_original()
    {
        Random random = new(4);
        StateDriver state = new(s_tight);
        Run(random, state, 2_000);
        using StateView view = state.Machine.ViewAll();
        Dictionary<string, byte[]> records = [];
        Take(view, records, int.MaxValue / 2);
        byte[][] shuffled = [.. records.Values];
        random.Shuffle(shuffled);
        StateMachine loaded = Load(view.Summary, shuffled);
        Assert.Equal(state.Machine.Time, loaded.Time);
        Assert.Equal(state.Machine.Counts with { Bytes = 0 }, loaded.Counts with { Bytes = 0 });

        StateDriver copy = new(s_tight, loaded) { Now = state.Now };
        for (int i = 0; i < 3_000; i++)
        {
            int seed = random.Next();
            Assert.Equal(Step(new Random(seed), state), Step(new Random(seed), copy));
            Assert.Equal(state.Machine.Digest, loaded.Digest);
        }
    }

    [Theory]
    [InlineData(5)]
    [InlineData(6)]
    public void Changes_on_top_of_earlier_ones_are_the_whole_state(int seed)
    {
        Random random = new(seed);
        StateDriver state = new(s_tight);
        Dictionary<string, byte[]> stored = [];
        for (int round = 0; round < 40; round++)
        {
            Run(random, state, random.Next(0, 200));
            using StateView view = state.Machine.ViewChanges();
            Assert.Equal(0, state.Machine.ChangedKeys);
            ulong digest = state.Machine.Digest;
            while (Take(view, stored, random.Next(1, 300)))
            {
                Run(random, state, random.Next(0, 5));
            }

            Assert.Equal(digest, Load(view.Summary, stored.Values).Digest);
        }
    }

    [Fact]
    public void Two_views_at_a_time_do_not_disturb_each_other()
    {
        Random random = new(7);
        StateDriver state = new(s_tight);
        Run(random, state, 1_000);
        using StateView first = state.Machine.ViewAll();
        Dictionary<string, byte[]> firstRecords = [];
        Take(first, firstRecords, 500);
        Run(random, state, 100);
        using StateView second = state.Machine.ViewAll();
        Dictionary<string, byte[]> secondRecords = [];
        Run(random, state, 100);
        bool more = true;
        while (more)
        {
            more = Take(first, firstRecords, 200) | Take(second, secondRecords, 300);
            Run(random, state, 3);
        }

        Assert.NotEqual(first.Summary.Digest, second.Summary.Digest);
        Load(first.Summary, firstRecords.Values);
        Load(second.Summary, secondRecords.Values);
    }

    [Fact]
    public void Every_flipped_bit_and_every_missing_record_is_found()
    {
        StateDriver state = new(s_tight);
        state.Set("a", "one", ttlMs: 60_000);
        state.Set("a", "two");
        state.Set("b", null);
        state.Set("c", "x");
        state.Delete("c");
        using StateView view = state.Machine.ViewAll();
        Dictionary<string, byte[]> records = [];
        Take(view, records, int.MaxValue / 2);
        foreach ((string key, byte[] record) in records)
        {
            Assert.Throws<InvalidDataException>(
                () => Load(view.Summary, records.Where(pair => pair.Key != key).Select(pair => pair.Value)));
            Assert.Throws<InvalidDataException>(() => Load(view.Summary, [.. records.Values, record]));
            for (int bit = 0; bit < record.Length * 8; bit++)
            {
                if (bit / 8 == 3)
                {
                    // The byte without a meaning.
                    continue;
                }

                byte[] damaged = [.. record];
                damaged[bit / 8] ^= (byte)(1 << (bit % 8));
                Assert.Throws<InvalidDataException>(
                    () => Load(view.Summary, records.Select(pair => pair.Key == key ? damaged : pair.Value)));
            }
        }

        Load(view.Summary, records.Values);
    }

    [Fact]
    public void View_of_an_empty_state_has_nothing()
    {
        StateDriver state = new(s_tight);
        using StateView view = state.Machine.ViewAll();
        Assert.False(Take(view, [], 100));
        Assert.Equal(0UL, Load(view.Summary, []).Digest);
    }

    private static StateMachine Load(StateSummary summary, IEnumerable<byte[]> records)
    {
        StateLoader loader = new(s_tight, summary);
        foreach (byte[] record in records)
        {
            loader.Add(record);
        }

        return loader.Finish();
    }

    private static bool Take(StateView view, Dictionary<string, byte[]> records, int bytesMax)
    {
        ViewSlice slice = new(0);
        bool more = view.TryTake(slice, bytesMax);
        byte[] taken = [.. slice.Rows.Written, .. slice.PreImages.SelectMany(static chunk => chunk)];
        Assert.Equal(taken.Length, slice.Bytes);
        ReadOnlySpan<byte> rest = taken;
        while (!rest.IsEmpty)
        {
            int length = BinaryPrimitives.ReadInt32LittleEndian(rest);
            byte[] record = rest.Slice(sizeof(int), length).ToArray();
            records[$"{KeyRecord.Row(record)}"] = record;
            rest = rest[(sizeof(int) + length)..];
        }

        slice.Clear();
        return more;
    }

    private static void Run(Random random, StateDriver state, int commands)
    {
        for (int i = 0; i < commands; i++)
        {
            Step(random, state);
        }
    }

    private static Answer Step(Random random, StateDriver state)
    {
        state.Now += random.Next(5) == 0 ? random.Next(60) : 0;
        string key = $"k{random.Next(60)}";
        CommandFlags history = random.Next(4) == 0 ? CommandFlags.WithoutHistory : CommandFlags.None;
        return random.Next(8) switch
        {
            0 => state.Do(new TestCommand(CommandKind.Delete, key) { Flags = history }),
            1 =>
                state.Do(
                    new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl, TtlMs = random.Next(0, 300) }),
            2 =>
                state.Do(
                    new TestCommand(CommandKind.Increment, $"n{random.Next(5)}")
                    {
                        Flags = CommandFlags.Number,
                        Number = random.Next(-5, 6),
                    }),
            3 => state.Do(new TestCommand(CommandKind.ExpireSweep, "k") { Flags = CommandFlags.Number, Number = 3 }),
            4 => state.Do(new TestCommand(CommandKind.Set, key, "t")
            {
                Flags = history | CommandFlags.Ttl,
                TtlMs = random.Next(1, 500),
            }),
            _ =>
                state.Do(
                    new TestCommand(CommandKind.Set, key, new string('v', random.Next(0, 200)))
                    {
                        Flags = history,
                        Account = (ushort)random.Next(4),
                    }),
        };
    }
}
