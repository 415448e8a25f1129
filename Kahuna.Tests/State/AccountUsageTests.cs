using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.State;

/// <summary>Which account each key is charged to, whatever writes it and whatever ends it.</summary>
public sealed class AccountUsageTests : TwoPhaseTests
{
    private const ushort Ann = 2;
    private const ushort Bob = 65_535;

    [Fact]
    public void A_key_is_charged_to_whom_wrote_it_last()
    {
        Account = Ann;
        Set("a/x", "1234");
        Assert.Equal((1, 7), Used(Ann));
        Set("a/x", "12");
        Assert.Equal((1, 5), Used(Ann));
        Do(Add("a/n", 100));
        Assert.Equal((2, 11), Used(Ann));
        Account = Bob;
        Do(Add("a/n", 1));
        Assert.Equal(((1, 5), (1, 6)), (Used(Ann), Used(Bob)));
        Account = 0;
        Set("a/x", "123");
        Assert.Equal(((0, 0), (1, 6)), (Used(Ann), Used(Bob)));
        RequireSame();
    }

    [Fact]
    public void A_longer_life_leaves_a_key_to_its_writer()
    {
        Account = Ann;
        Set("a/x", "1");
        Account = Bob;
        Do(new TestCommand(CommandKind.Extend, "a/x") { Flags = CommandFlags.Ttl, TtlMs = 1_000 });
        Set("a/x", "2", ttlMs: 0);
        Account = Ann;
        Do(new TestCommand(CommandKind.Extend, "a/x") { Flags = CommandFlags.Ttl, TtlMs = 1_000 });
        Assert.Equal(((0, 0), (1, 4)), (Used(Ann), Used(Bob)));
        RequireSame();
    }

    [Fact]
    public void A_write_that_its_condition_refuses_charges_nobody()
    {
        Account = Ann;
        Set("a/x", "1");
        Account = Bob;
        Answer refused = Do(Write("a/x", "22") with { Flags = CommandFlags.IfAbsent });
        Assert.Equal(OutcomeStatus.ConditionFailed, refused.Status);
        Assert.Equal(((1, 4), (0, 0)), (Used(Ann), Used(Bob)));
        RequireSame();
    }

    [Fact]
    public void What_is_deleted_expires_or_is_deleted_with_a_range_is_given_back()
    {
        Account = Ann;
        foreach (string key in (string[])["a/1", "a/2", "a/3", "a/4"])
        {
            Set(key, "v", ttlMs: key == "a/2" ? 10 : key == "a/3" ? 20 : 0);
        }

        Assert.Equal((4, 16), Used(Ann));
        Account = Bob;
        Do(new TestCommand(CommandKind.Delete, "a/1"));
        Assert.Equal((3, 12), Used(Ann));
        State.Now += 10;
        Do(new TestCommand(CommandKind.ExpireSweep, "") { Flags = CommandFlags.Number, Number = 10 });
        Assert.Equal((2, 8), Used(Ann));
        State.Now += 10;
        Do(Write("a/3", "v") with { Flags = CommandFlags.IfPresent });
        Assert.Equal((1, 4), Used(Ann));
        Do(Range(CommandKind.KeyRangeDelete, "a/", "a0"));
        Assert.Equal(((0, 0), (0, 0)), (Used(Ann), Used(Bob)));
        RequireSame();
    }

    [Fact]
    public void What_is_evicted_is_given_back()
    {
        StateDriver state = new();
        state.Machine.TrackUses();
        state.Do(Write("a/x", "1") with { Account = Ann });
        state.Do(Write("a/y", "1") with { Account = Ann });
        state.Delete("a/y");
        ByteBuffer names = ByteBuffer.Rent();
        long bytes = long.MaxValue;
        Assert.True(state.Machine.TryChooseVictims(names, 10_000, ref bytes));
        state.Machine.BeginEntry(default, new ClusterTime(state.Now));
        state.Machine.Apply(
            new Command { Kind = CommandKind.Evict, Durability = Durability.Ephemeral, Value = names.Written }, null);
        names.Return();
        Assert.Equal((0, 0), Used(Ann, state.Machine));
        Assert.True(state.Machine.AccountsMatch);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }

    [Fact]
    public void A_transaction_and_a_script_charge_the_account_of_their_command()
    {
        Account = Ann;
        Do(Transaction("a/x", [Write("a/x", "1"), Add("a/n", 5)]));
        Assert.Equal((2, 8), Used(Ann));
        ByteBuffer body = ByteBuffer.Rent();
        Assert.Null(ScriptBody.Write(body, "set `s/a` '12345'", []));
        Account = Bob;
        Do(new TestCommand(CommandKind.Script, "s/a") { Binary = body.Written.ToArray() });
        body.Return();
        Assert.Equal((1, 8), Used(Bob));
        RequireSame();
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void A_prepared_part_charges_who_prepared_it_whoever_ends_it(bool isReloaded)
    {
        Account = Ann;
        Set("a/ttl", "1", ttlMs: 10_000);
        Prepare([If("a/ttl", CommandFlags.IfPresent)], [Write("a/x", "1")]);
        Prepare([], [Write("b/x", "1")], anchor: true, id: new TransactionId(7, 8), anchorKey: "b/x");
        Assert.Equal((1, 6), Used(Ann));
        if (isReloaded)
        {
            State = State.Reloaded(new StateLimits());
            Follower = Follower.Reloaded(new StateLimits());
        }

        Account = Bob;
        Finish(TransactionDecision.Then);
        Account = 0;
        Decide(TransactionDecision.Then, new TransactionId(7, 8));
        Assert.Equal(((3, 14), (0, 0)), (Used(Ann), Used(Bob)));
        RequireSame();
    }

    [Fact]
    public void A_loaded_state_knows_what_each_account_uses()
    {
        Account = Ann;
        Set("a/x", "1");
        Set("a/x", "2");
        Set("a/gone", "2");
        Do(new TestCommand(CommandKind.Delete, "a/gone"));
        Account = Bob;
        Set("a/y", "123");
        StateMachine loaded = State.Reloaded(new StateLimits()).Machine;
        Assert.Equal(((1, 4), (1, 6)), (Used(Ann, loaded), Used(Bob, loaded)));
        Assert.Equal(State.Machine.Digest, loaded.Digest);
        Assert.True(loaded.AccountsMatch);
    }

    [Fact]
    public void Another_account_is_another_state()
    {
        Account = Ann;
        Set("a/x", "1");
        ulong anns = State.Machine.Digest;
        State = new StateDriver();
        Account = Bob;
        Set("a/x", "1");
        Assert.NotEqual(anns, State.Machine.Digest);
        Assert.NotEqual(StateDigest.OfAccount(new Row(1), Ann), StateDigest.OfAccount(new Row(2), Ann));
    }

    [Fact]
    public void A_record_without_an_account_is_nobodys_and_a_deleted_key_has_none()
    {
        Account = Ann;
        Set("a/x", "1");
        Do(new TestCommand(CommandKind.Delete, "a/x"));
        Set("a/y", "1");
        using StateView view = State.Machine.ViewAll();
        byte[][] records = [.. StateRecords.TakeAll(view)];
        byte[] deleted = records.Single(static record => Encoding.UTF8.GetString(KeyRecord.Key(record)) == "a/x");
        byte[] present = records.Single(static record => Encoding.UTF8.GetString(KeyRecord.Key(record)) == "a/y");
        Assert.Equal((0, 0, Ann, 0), (deleted[30], deleted[31], present[30], present[31]));
        present[30] = 0;
        Assert.True(KeyRecordReader.TryBegin(present, out KeyRecordReader reader));
        Assert.Equal(0, reader.Account);
        deleted[30] = 1;
        Assert.False(KeyRecordReader.TryBegin(deleted, out _));
    }

    [Fact]
    public void A_write_with_an_account_allocates_nothing()
    {
        StateMachine machine = new(new StateLimits { HistoryPerKey = 0 });
        byte[] bytes = (Write("a/x", "1") with { Account = Ann }).Encode();
        Apply();
        Assert.Equal(0, AllocatedBytes.LeastOf(Apply));

        void Apply()
        {
            Assert.True(Command.TryRead(bytes, out Command command));
            machine.Apply(in command, null);
        }
    }

    private (long Keys, long Bytes) Used(ushort account)
    {
        Assert.Equal(Used(account, Follower.Machine), Used(account, State.Machine));
        return Used(account, State.Machine);
    }

    private static (long Keys, long Bytes) Used(ushort account, StateMachine machine) =>
        (machine.Accounts.Keys(account), machine.Accounts.Bytes(account));
}
