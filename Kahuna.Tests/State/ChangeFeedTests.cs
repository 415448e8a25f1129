using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>Every change of a key is told once, in the order of the log, and alike on every member (ADR 28).</summary>
public sealed class ChangeFeedTests
{
    private static readonly GroupId s_group = new(7);

    [Theory]
    [InlineData(1, 8, 200, 4000)]
    [InlineData(2, 3, 50, 1500)]
    [InlineData(3, 1, 1000, 600)]
    [InlineData(4, 0, 1000, 4000)]
    [InlineData(5, 100, 20, 100_000)]
    public void What_can_be_read_follows_from_what_is_told(
        int seed, int historyPerKey, long historyAgeMs, long historyBytes)
    {
        StateLimits limits =
            new() { HistoryPerKey = historyPerKey, HistoryAgeMs = historyAgeMs, HistoryBytes = historyBytes };
        Random random = new(seed);
        StateDriver state = new(limits);
        state.Machine.TrackUses();
        ModelState model = new(limits);
        ChangeMirror mirror = new();
        state.Machine.TellChanges(mirror, s_group, new Epoch(3));

        // Another member: other hashes, no callers, restored from a view half-way.
        StateLimits limitsOfReplica = limits with { HashSecret = new HashSecret(1, 2) };
        StateDriver replica = new(limitsOfReplica);
        ChangeMirror toldByReplica = new();
        replica.Machine.TellChanges(toldByReplica, s_group, new Epoch(3));
        Dictionary<string, long> deadlines = [];
        for (int step = 0; step < 3000; step++)
        {
            state.Now += random.Next(4) == 0 ? random.Next(30) : 0;
            replica.Now = state.Now;
            if (step == 1500)
            {
                replica = replica.Reloaded(limitsOfReplica);
                replica.Machine.TellChanges(toldByReplica, s_group, new Epoch(3));
            }

            TestCommand test = random.Next(25) == 0 ? Evict(state) : StatePropertyTests.Draw(random, model);
            if (test.Kind is CommandKind.Get or CommandKind.Exists)
            {
                continue;
            }

            if (test.Kind == CommandKind.Evict)
            {
                state.Follow(test);
            }
            else
            {
                model.Do(test, state.Now);
                Note(test, state.Do(test), state.Now, deadlines);
            }

            replica.Follow(test);
            Assert.Equal(mirror.Told.Count, toldByReplica.Told.Count);
            Compare(state, mirror, deadlines);
        }

        Assert.Equal(state.Machine.Digest, replica.Machine.Digest);
        Assert.Equal(mirror.Told, toldByReplica.Told);
        Assert.All(
            mirror.Told, told => Assert.Equal((s_group, new Epoch(3)), (told.Position.Group, told.Position.Epoch)));
        foreach (ChangeKind kind in Enum.GetValues<ChangeKind>())
        {
            Assert.True(
                mirror.Told.Any(told => told.Kind == kind) || (kind == ChangeKind.HistoryCut && historyPerKey == 0),
                $"{kind} was never told");
        }
    }

    [Fact]
    public void A_key_whose_time_has_passed_is_told_when_a_command_meets_it()
    {
        StateDriver state = new();
        ChangeMirror mirror = new();
        state.Set("a", "1", ttlMs: 10);
        state.Set("b", "1", ttlMs: 20);
        state.Machine.TellChanges(mirror, s_group, Epoch.None);
        state.Now += 100;
        Assert.Equal(OutcomeStatus.NotFound, state.Get("a").Status);
        state.Set("other", "1");
        Assert.DoesNotContain(mirror.Told, told => told.Kind == ChangeKind.Expired);

        state.Machine.TellChanges(null, s_group, Epoch.None);
        RecordingSink sink = new();
        state.Machine.TellChanges(sink, s_group, Epoch.None);
        state.Set("b", "2");
        state.Sweep(10);
        Assert.Equal(
            [("b", ChangeKind.Expired, 4UL, 0), ("b", ChangeKind.Written, 4UL, 1), ("a", ChangeKind.Expired, 5UL, 0)],
            sink.Told);
    }

    [Fact]
    public void Rows_of_the_system_are_not_told()
    {
        RecordingSink sink = new();
        StateDriver state = new();
        state.Machine.TellChanges(sink, s_group, Epoch.None);
        state.Numbered(
            new TestCommand(CommandKind.Set, "k", "v") { Flags = CommandFlags.ReturnPrevious },
            session: 1,
            sequence: 1);
        state.Numbered(
            new TestCommand(CommandKind.Set, "k", "w") { Flags = CommandFlags.ReturnPrevious },
            session: 1,
            sequence: 2);
        Assert.Equal([("k", ChangeKind.Written, 1UL, 0), ("k", ChangeKind.Written, 2UL, 0)], sink.Told);
    }

    private static TestCommand Evict(StateDriver state)
    {
        ByteBuffer names = ByteBuffer.Rent();
        long bytes = 100;
        state.Machine.TryChooseVictims(names, 10_000, ref bytes);
        TestCommand evict = new(CommandKind.Evict, string.Empty, System.Text.Encoding.UTF8.GetString(names.Written));
        names.Return();
        return evict;
    }

    private static void Note(TestCommand test, Answer answer, long now, Dictionary<string, long> deadlines)
    {
        if (answer.Status != OutcomeStatus.Applied
            || test.Kind is not (CommandKind.Set or CommandKind.Extend or CommandKind.Delete))
        {
            return;
        }

        deadlines.Remove(test.Key);
        if ((test.Flags & CommandFlags.Ttl) != 0 && test.TtlMs > 0)
        {
            deadlines[test.Key] = now + test.TtlMs;
        }
    }

    private static void Compare(StateDriver state, ChangeMirror mirror, Dictionary<string, long> deadlines)
    {
        foreach ((string name, ChangeMirror.Key key) in mirror.Keys)
        {
            Answer now = state.Get(name);
            if (key.Exists && now.Status == OutcomeStatus.NotFound)
            {
                Assert.True(
                    deadlines.TryGetValue(name, out long deadline) && deadline <= state.Now,
                    $"{name} is gone and nobody was told");
                continue;
            }

            Assert.Equal((key.Exists, key.Revision.Value), (now.Status == OutcomeStatus.Found, now.Revision));
            Assert.True(!key.Exists || key.Value == (now.IsNull ? null : now.Value));
            for (long revision = Math.Max(1, key.Revision.Value - 9); revision < key.Revision.Value; revision++)
            {
                Answer then = state.Get(name, revision);
                bool isKept = key.Kept.TryGetValue(new Revision(revision), out (bool Exists, string? Value) kept);
                OutcomeStatus expected = !isKept
                    ? OutcomeStatus.RevisionCompacted
                    : kept.Exists
                    ? OutcomeStatus.Found
                    : OutcomeStatus.NotFound;
                Assert.True(expected == then.Status, $"{name} at {revision}: {then.Status}, was told {expected}");
                Assert.True(expected != OutcomeStatus.Found || kept.Value == (then.IsNull ? null : then.Value));
            }
        }

        Assert.Equal(mirror.Keys.Values.Count(key => key.Exists), state.Machine.Counts.Keys);
        Assert.Equal(mirror.Keys.Values.Count(key => !key.Exists), state.Machine.Counts.Tombstones);
    }

    private sealed class RecordingSink : IChangeSink
    {
        public List<(string Key, ChangeKind Kind, ulong Index, int N)> Told { get; } = [];

        public void Changed(in ChangePosition position, scoped in Change change) =>
            Told.Add((System.Text.Encoding.UTF8.GetString(change.Key), change.Kind, position.Index.Value, position.N));
    }
}
