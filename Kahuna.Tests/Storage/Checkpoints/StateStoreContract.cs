using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>The contract of every state store, with a subclass per store.</summary>
public abstract class StateStoreContract : IDisposable
{
    private static readonly GroupId s_one = new(1);
    private static readonly GroupId s_two = new(2);

    public abstract void Dispose();

    [Fact]
    public void Nothing_is_stored_at_first()
    {
        using IStateStore store = Open();
        Assert.Null(store.Find(s_one));
    }

    [Fact]
    public void What_was_committed_is_there_after_reopening()
    {
        Random random = new(1);
        StateDriver state = new();
        for (int round = 1; round <= 5; round++)
        {
            Change(state, random, 500);
            CheckpointMark mark;
            using (IStateStore store = Open())
            {
                mark = Write(store, s_one, state.Machine, (ulong)round);
            }

            using IStateStore again = Open();
            Assert.Equal(mark, again.Find(s_one));
            StateMachine loaded = Load(again, s_one);
            Assert.Equal(state.Machine.Digest, loaded.Digest);
            Assert.Equal(state.Machine.Counts with { Bytes = 0 }, loaded.Counts with { Bytes = 0 });
        }
    }

    [Fact]
    public void Write_that_is_not_committed_changes_nothing()
    {
        Random random = new(2);
        StateDriver state = new();
        Change(state, random, 200);
        using (IStateStore store = Open())
        {
            Write(store, s_one, state.Machine, 1);
        }

        ulong digest = state.Machine.Digest;
        Change(state, random, 200);
        using (IStateStore store = Open())
        {
            using StateView view = state.Machine.ViewAll();
            using IStateWriter writer = store.BeginWrite(
                s_one, new CheckpointMark(new LogIndex(2), new Term(1), view.Summary), whole: true);
            AddAll(writer, view);
        }

        Assert.Empty(Unfinished());

        using IStateStore again = Open();
        Assert.Equal(1UL, again.Find(s_one)!.Value.Index.Value);
        Assert.Equal(digest, Load(again, s_one).Digest);
    }

    [Fact]
    public void Groups_do_not_see_each_other()
    {
        StateDriver one = new();
        StateDriver two = new();
        one.Set("key", "one");
        two.Set("key", "two");
        two.Set("other", "two");
        using IStateStore store = Open();
        Write(store, s_one, one.Machine, 1);
        Write(store, s_two, two.Machine, 7);
        Assert.Equal(one.Machine.Digest, Load(store, s_one).Digest);
        Assert.Equal(two.Machine.Digest, Load(store, s_two).Digest);
        Assert.Equal(7UL, store.Find(s_two)!.Value.Index.Value);
        Assert.Null(store.Find(new GroupId(3)));
    }

    [Fact]
    public void Long_keys_and_values_and_many_of_them_come_back()
    {
        StateDriver state = new();
        state.Set(new string('k', 1_000), new string('v', 1 << 20));
        for (int i = 0; i < 5_000; i++)
        {
            state.Set($"key/{i}", new string('v', i % 300), ttlMs: i % 7 == 0 ? 60_000 : 0);
        }

        using IStateStore store = Open();
        Write(store, s_one, state.Machine, 1);
        Assert.Equal(state.Machine.Digest, Load(store, s_one).Digest);
    }

    [Fact]
    public void Reader_is_not_disturbed_by_later_writes()
    {
        Random random = new(3);
        StateDriver state = new();
        Change(state, random, 2_000);
        using IStateStore store = Open();
        Assert.Null(store.OpenReader(s_one));
        CheckpointMark mark = Write(store, s_one, state.Machine, 1);
        using IStateReader reader = store.OpenReader(s_one)!;
        StateLoader read = new(new StateLimits(), mark.Summary);
        int slices = 0;
        while (ReadSlice(reader, read, 500))
        {
            // Between any two slices the state changes, in part and as a whole.
            Change(state, random, 50);
            Write(store, s_one, state.Machine, (ulong)(++slices + 1), whole: slices % 3 == 0);
        }

        Assert.True(slices > 5);
        Assert.False(ReadSlice(reader, read, 500));
        Assert.Equal(mark, reader.Mark);
        Assert.Equal(mark.Summary.Digest, read.Finish().Digest);
        Assert.Equal(state.Machine.Digest, Load(store, s_one).Digest);
    }

    [Fact]
    public void Reader_hands_out_at_least_one_record_and_about_what_is_asked()
    {
        StateDriver state = new();
        for (int i = 0; i < 20; i++)
        {
            state.Set($"key{i}", new string('v', 100));
        }

        using IStateStore store = Open();
        CheckpointMark mark = Write(store, s_one, state.Machine, 1);
        using IStateReader one = store.OpenReader(s_one)!;
        using IStateReader all = store.OpenReader(s_one)!;
        StateLoader loader = new(new StateLimits(), mark.Summary);
        ByteBuffer buffer = ByteBuffer.Rent();
        int records = 0;
        for (int before = 0; one.TryRead(buffer, 0); before = buffer.Length)
        {
            ReadOnlySpan<byte> bytes = buffer.Written[before..];
            Assert.True(RowImage.TryTake(ref bytes, out RowImage record));
            Assert.Equal(0, bytes.Length);
            loader.Add(record.Bytes);
            records++;
        }

        Assert.Equal(20, records);
        Assert.Equal(state.Machine.Digest, loader.Finish().Digest);
        ByteBuffer other = ByteBuffer.Rent();
        Assert.True(all.TryRead(other, int.MaxValue));
        Assert.Equal(buffer.Length, other.Length);
        Assert.False(all.TryRead(other, int.MaxValue));
        buffer.Return();
        other.Return();
    }

    [Fact]
    public void Whole_write_removes_what_it_does_not_have()
    {
        using IStateStore store = Open();
        StateDriver neighbour = new();
        neighbour.Set("key/1", "of another group");
        Write(store, s_two, neighbour.Machine, 1);
        StateDriver before = new();
        Change(before, new Random(4), 500);
        Write(store, s_one, before.Machine, 10);

        StateDriver after = new();
        after.Set("key/1", "kept name, other value");
        after.Set("unheard of", "new");
        Write(store, s_one, after.Machine, 5, whole: true);
        StateMachine loaded = Load(store, s_one);
        Assert.Equal(after.Machine.Digest, loaded.Digest);
        Assert.Equal(2, loaded.Counts.Keys);
        Assert.Equal(5UL, store.Find(s_one)!.Value.Index.Value);

        after.Set("later", "on top of it");
        Write(store, s_one, after.Machine, 6);
        Assert.Equal(after.Machine.Digest, Load(store, s_one).Digest);
        Assert.Equal(neighbour.Machine.Digest, Load(store, s_two).Digest);
    }

    [Fact]
    public void Empty_state_replaces_one_with_keys()
    {
        StateDriver state = new();
        state.Set("key", "value");
        using IStateStore store = Open();
        Write(store, s_one, state.Machine, 1);
        StateDriver empty = new();
        Write(store, s_one, empty.Machine, 2, whole: true);
        Assert.Equal(0, Load(store, s_one).Counts.Keys);
        using IStateReader reader = store.OpenReader(s_one)!;
        Assert.Equal(2UL, reader.Mark.Index.Value);
        ByteBuffer buffer = ByteBuffer.Rent();
        Assert.False(reader.TryRead(buffer, 1_000));
        buffer.Return();
    }

    [Fact]
    public void Writers_that_are_open_at_once_do_not_disturb_each_other()
    {
        StateDriver[] states = [new(), new(), new()];
        GroupId[] groups = [s_one, s_two, s_one];
        using IStateStore store = Open();
        List<(StateView View, IStateWriter Writer)> open = [];
        for (int i = 0; i < states.Length; i++)
        {
            Change(states[i], new Random(10 + i), 800);
            StateView view = states[i].Machine.ViewAll();
            open.Add(
                (
                    view,
                    store.BeginWrite(
                        groups[i],
                        new CheckpointMark(new LogIndex((ulong)i + 1), new Term(1), view.Summary),
                        whole: true)));
        }

        for (bool more = true; more;)
        {
            more = false;
            foreach ((StateView view, IStateWriter writer) in open)
            {
                more |= StateSlices.Add(writer, view, 700);
            }
        }

        open[2].Writer.Commit();
        open[1].Writer.Commit();
        Assert.Equal(states[2].Machine.Digest, Load(store, s_one).Digest);
        open[0].Writer.Commit();
        Assert.Equal(states[0].Machine.Digest, Load(store, s_one).Digest);
        Assert.Equal(states[1].Machine.Digest, Load(store, s_two).Digest);
        foreach ((StateView view, IStateWriter writer) in open)
        {
            view.Dispose();
            writer.Dispose();
        }

        Assert.Empty(Unfinished());
    }

    [Fact]
    public void Write_is_over_after_its_commit()
    {
        StateDriver state = new();
        using IStateStore store = Open();
        using StateView view = state.Machine.ViewAll();
        using IStateWriter writer = store.BeginWrite(
            s_one, new CheckpointMark(new LogIndex(1), new Term(1), view.Summary), whole: true);
        writer.Commit();
        Assert.Throws<InvariantException>(() => writer.Add([]));
        Assert.Throws<InvariantException>(writer.Commit);
    }

    /// <summary>Files of writes that were not committed.</summary>
    private protected abstract IEnumerable<string> Unfinished();

    private protected abstract IStateStore Open();

    private protected static void AssertNamesTheWayOut(Exception error)
    {
        Assert.Contains("start this node with --rebuild", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("restore", error.Message, StringComparison.Ordinal);
    }

    private protected static StateMachine Load(IStateStore store, GroupId group)
    {
        StateLoader loader = new(new StateLimits(), store.Find(group)!.Value.Summary);
        store.Load(group, record => loader.Add(record.Bytes));
        return loader.Finish();
    }

    private protected static CheckpointMark Write(
        IStateStore store, GroupId group, StateMachine machine, ulong index, bool whole = false)
    {
        whole |= store.TakesWholeStates;
        using StateView view = whole ? machine.ViewAll() : machine.ViewChanges();
        CheckpointMark mark = new(new LogIndex(index), new Term(1), view.Summary);
        using IStateWriter writer = store.BeginWrite(group, mark, whole);
        AddAll(writer, view);
        writer.Commit();
        return mark;
    }

    private protected static void Change(StateDriver state, Random random, int commands)
    {
        for (int i = 0; i < commands; i++)
        {
            state.Now += random.Next(20);
            string key = $"key/{random.Next(100)}";
            switch (random.Next(5))
            {
                case 0:
                    state.Delete(key);
                    break;
                case 1:
                    state.Extend(key, random.Next(0, 5_000));
                    break;
                default:
                    state.Set(
                        key,
                        random.Next().ToString(System.Globalization.CultureInfo.InvariantCulture),
                        ttlMs: random.Next(3) == 0 ? 3_000 : 0);
                    break;
            }
        }
    }

    /// <summary>Loads one slice; false when there was none.</summary>
    private static bool ReadSlice(IStateReader reader, StateLoader loader, int bytes)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        bool any = reader.TryRead(buffer, bytes);
        ReadOnlySpan<byte> records = buffer.Written;
        Assert.Equal(any, records.Length > 0);
        while (RowImage.TryTake(ref records, out RowImage record))
        {
            loader.Add(record.Bytes);
        }

        Assert.Equal(0, records.Length);
        buffer.Return();
        return any;
    }

    private protected static void AddAll(IStateWriter writer, StateView view)
    {
        while (StateSlices.Add(writer, view, 10_000))
        {
        }
    }
}
