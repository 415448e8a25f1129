using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.States;

/// <summary>What every state store promises. A subclass per store.</summary>
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
            StateMark mark;
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
            using IStateWriter writer = store.BeginWrite(s_one, new StateMark(new LogIndex(2), new Term(1), view.Summary));
            AddAll(writer, view);
        }

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

    private protected abstract IStateStore Open();

    private protected static StateMachine Load(IStateStore store, GroupId group)
    {
        StateLoader loader = new(new StateLimits(), store.Find(group)!.Value.Summary);
        store.Load(group, loader.Add);
        return loader.Finish();
    }

    private protected static StateMark Write(IStateStore store, GroupId group, StateMachine machine, ulong index)
    {
        using StateView view = store.TakesWholeStates ? machine.ViewAll() : machine.ViewChanges();
        StateMark mark = new(new LogIndex(index), new Term(1), view.Summary);
        using IStateWriter writer = store.BeginWrite(group, mark);
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
                    state.Set(key, random.Next().ToString(System.Globalization.CultureInfo.InvariantCulture), ttlMs: random.Next(3) == 0 ? 3_000 : 0);
                    break;
            }
        }
    }

    private static void AddAll(IStateWriter writer, StateView view)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        bool more = true;
        while (more)
        {
            buffer.Length = 0;
            more = view.TryTake(buffer, 10_000);
            writer.Add(buffer.Written);
        }

        buffer.Return();
    }
}
