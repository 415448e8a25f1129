using System.Globalization;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>
/// Random commands against the plain model: every outcome, every count and every readable revision must agree.
/// </summary>
public sealed class StatePropertyTests
{
    private static readonly int[] s_lengths = [0, 1, 2, 12, 13, 60, 100, 113, 114, 200, 700];

    [Theory]
    [InlineData(1, 8, 200, 4000)]
    [InlineData(2, 3, 50, 1500)]
    [InlineData(3, 1, 1000, 600)]
    [InlineData(4, 0, 1000, 4000)]
    [InlineData(5, 100, 20, 100_000)]
    [InlineData(6, 2, 1_000_000, 300)]
    public void The_state_agrees_with_the_model(int seed, int historyPerKey, long historyAgeMs, long historyBytes)
    {
        StateLimits limits =
            new() { HistoryPerKey = historyPerKey, HistoryAgeMs = historyAgeMs, HistoryBytes = historyBytes };
        Random random = new(seed);
        StateDriver state = new(limits);
        StateDriver replica = new(limits);
        ModelState model = new(limits);
        HashSet<OutcomeStatus> seen = [];
        for (int step = 0; step < 6000; step++)
        {
            state.Now += random.Next(4) == 0 ? random.Next(30) : 0;
            replica.Now = state.Now;
            TestCommand test = Draw(random, model) with { Account = (ushort)(step % 3 * 300) };
            Answer expected = model.Do(test, state.Now);
            Answer actual = state.Do(test);
            Assert.True(expected == actual, $"step {step}: {test} gave {actual}, the model says {expected}");
            Assert.Equal(model.Counts, state.Machine.Counts with { Bytes = 0 });
            if (test.Kind is not (CommandKind.Get or CommandKind.Exists))
            {
                replica.Do(test);
            }

            seen.Add(actual.Status);
            if (step % 500 == 0)
            {
                Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
                Assert.True(state.Machine.AccountsMatch);
                Assert.True(state.Reloaded(limits).Machine.AccountsMatch);
            }
        }

        Assert.Equal(state.Machine.Digest, replica.Machine.Digest);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
        CompareAll(model, state);
        foreach (OutcomeStatus status in new[]
        {
            OutcomeStatus.Applied, OutcomeStatus.Found, OutcomeStatus.NotFound, OutcomeStatus.ConditionFailed,
            OutcomeStatus.NotAnInteger, OutcomeStatus.Overflow, OutcomeStatus.RevisionCompacted,
        })
        {
            Assert.Contains(status, seen);
        }
    }

    [Fact]
    public void The_digest_does_not_depend_on_the_order_of_keys()
    {
        string[] keys = Enumerable.Range(0, 500).Select(i => $"key/{i}").ToArray();
        ulong? first = null;
        for (int seed = 0; seed < 3; seed++)
        {
            StateDriver state = new(new StateLimits { HistoryPerKey = 0 });
            new Random(seed).Shuffle(keys);
            foreach (string key in keys)
            {
                state.Set(key, "one");
                state.Set(key, key);
            }

            // What is deleted is forgotten, and keys that are made afterwards begin above it.
            Assert.All(keys.Where(key => key.EndsWith('7')), key => state.Delete(key));
            state.Sweep(1_000);
            Assert.Equal(0, state.Machine.Counts.Tombstones);
            first ??= state.Machine.Digest;
            Assert.Equal(first, state.Machine.Digest);
        }
    }

    [Fact]
    public void The_digest_covers_everything_that_can_be_observed()
    {
        HashSet<ulong> digests = [];
        StateDriver state = new();
        void Differs() => Assert.True(digests.Add(state.Machine.Digest), "two different states have one digest");

        Differs();
        state.Set("k", "a");
        Differs();
        state.Set("k", string.Empty);
        Differs();
        state.Set("k", null, CommandFlags.WithoutHistory);
        Differs();
        state.Extend("k", 10);
        Differs();
        state.Extend("k", 20);
        Differs();
        state.Delete("k");
        Differs();
        state.Set("j", "a");
        Differs();
        state.Now += 601_000;
        state.Get("k");
        state.Sweep(0);
        Differs();
    }

    private static void CompareAll(ModelState model, StateDriver state)
    {
        foreach (ModelState.Row row in model.Rows.Values)
        {
            for (long revision = 0; revision <= row.Revision + 2; revision++)
            {
                TestCommand get =
                    new(CommandKind.Get, row.Key)
                    {
                        Flags = revision == 0 ? CommandFlags.None : CommandFlags.AtRevision,
                        AtRevision = revision,
                    };
                Assert.Equal(model.Do(get, state.Now), state.Do(get));
            }
        }
    }

    internal static TestCommand Draw(Random random, ModelState model)
    {
        string key = random.Next(40) == 0 ? new string('k', 1024) : $"b{random.Next(3)}/k{random.Next(12)}";
        model.Rows.TryGetValue(key, out ModelState.Row? row);
        TestCommand test = random.Next(12) switch
        {
            < 4 => new TestCommand(CommandKind.Set, key, DrawValue(random))
            {
                Flags = DrawOption(random, CommandFlags.Ttl, 3) | DrawOption(random, CommandFlags.IfAbsent, 6),
            },
            4 => new TestCommand(CommandKind.Delete, key),
            5 => new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl },
            < 8 => new TestCommand(CommandKind.Increment, key)
            {
                Flags = CommandFlags.Number,
                Number = random.Next(5) == 0 ? random.NextInt64(long.MinValue, long.MaxValue) : random.Next(-5, 6),
            },
            8 => new TestCommand(CommandKind.ExpireSweep, string.Empty)
            {
                Flags = CommandFlags.Number,
                Number = random.Next(4),
            },
            9 => new TestCommand(CommandKind.Exists, key),
            _ => new TestCommand(CommandKind.Get, key),
        };
        test = test with { TtlMs = test.Kind == CommandKind.Extend && random.Next(4) == 0 ? 0 : random.Next(1, 80) };
        if (test.Kind is CommandKind.Get or CommandKind.Exists)
        {
            return random.Next(2) == 0
                ? test
                : test with
                {
                    Flags = CommandFlags.AtRevision,
                    AtRevision = Math.Max(1, (row?.Revision ?? 0) + random.Next(-5, 3)),
                };
        }

        if (test.Kind == CommandKind.ExpireSweep)
        {
            return test;
        }

        if ((test.Flags & CommandFlags.IfAbsent) == 0)
        {
            test = test with
            {
                Flags = test.Flags
                    | DrawOption(random, CommandFlags.IfPresent, 6)
                    | DrawOption(random, CommandFlags.IfValue, 6)
                    | DrawOption(random, CommandFlags.IfRevision, 6),
                Compared = random.Next(3) == 0 ? DrawValue(random) : row?.Value,
                ComparedRevision = Math.Max(1, (row?.Revision ?? 0) + (random.Next(3) == 0 ? 1 : 0)),
            };
        }

        CommandFlags more = test.Kind == CommandKind.Extend
            ? CommandFlags.None
            : DrawOption(random, CommandFlags.WithoutHistory, 5);
        more |= test.Kind is CommandKind.Set or CommandKind.Delete
            ? DrawOption(random, CommandFlags.ReturnPrevious, 2)
            : CommandFlags.None;
        test = test with { Flags = test.Flags | more };
        Assert.True(Command.TryRead(test.Encode(), out Command command));
        Assert.True(CommandCheck.IsGood(command, Limits.ValueBytesDefault, out _, out string? sentence), sentence);
        return test;
    }

    private static CommandFlags DrawOption(Random random, CommandFlags flag, int oneIn) =>
        random.Next(oneIn) == 0 ? flag : CommandFlags.None;

    private static string? DrawValue(Random random) => random.Next(8) switch
    {
        0 => null,
        1 => random.NextInt64(long.MinValue, long.MaxValue).ToString(CultureInfo.InvariantCulture),
        2 or 3 => random.Next(-3, 4).ToString(CultureInfo.InvariantCulture),
        _ => new string((char)('a' + random.Next(26)), s_lengths[random.Next(s_lengths.Length)]),
    };
}
