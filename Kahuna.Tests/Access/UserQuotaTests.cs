using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Access;

/// <summary>What users with a quota may do, and whose account their writes name.</summary>
public sealed class UserQuotaTests
{
    private const ushort AnnsAccount = 2;

    private readonly ManualTime _time = new();
    private readonly AccessState _access;
    private readonly AccessGate _gate;
    private UserUsage _used;
    private ulong _version;

    public UserQuotaTests()
    {
        _access = new AccessState(isRequired: true, _time);
        _access.Quotas.Usage = account => account == AnnsAccount ? _used : new UserUsage(1_000, 1_000);
        _gate = new AccessGate(_access);
    }

    [Fact]
    public void Operations_of_a_second_pass_at_once_and_then_as_they_flow_in()
    {
        Caller ann = Known(new UserQuota(0, 0, 10));
        Assert.Equal(10, Passed(ann, 15));
        Assert.Contains("quota of 10 operations per second", Refusal(ann, Key(CommandKind.Get), OutcomeStatus.Busy));
        _time.Advance(TimeSpan.FromMilliseconds(300));
        Assert.Equal(3, Passed(ann, 15));
        _time.Advance(TimeSpan.FromSeconds(100));
        Assert.Equal(10, Passed(ann, 15));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(3)]
    [InlineData(7)]
    [InlineData(999)]
    public void The_bucket_has_room_for_one_second_whatever_the_rate_is(int perSecond) =>
        Assert.Equal(perSecond, Passed(Known(new UserQuota(0, 0, perSecond)), 2 * perSecond));

    [Fact]
    public void All_connections_of_a_user_share_its_operations_also_after_other_changes()
    {
        Caller first = Known(new UserQuota(0, 0, 10));
        Assert.Equal(6, Passed(first, 6));
        Assert.Equal(4, Passed(new Caller(_access, Ann(), CallerMethod.Token), 6));
        Publish(new UserRecord(AnnsAccount, "renamed") { Roles = ["admin"], Quota = new UserQuota(0, 0, 10) });
        Assert.Equal(0, Passed(first, 6));
        Publish(new UserRecord(AnnsAccount, "ann") { Roles = ["admin"], Quota = new UserQuota(0, 0, 20) });
        Assert.Equal(20, Passed(first, 25));
        Publish(new UserRecord(AnnsAccount, "ann") { Roles = ["admin"] });
        Assert.Equal(100, Passed(first, 100));
    }

    [Fact]
    public void A_list_counts_as_its_items_and_may_leave_a_debt()
    {
        Caller ann = Known(new UserQuota(0, 0, 10));
        Assert.Null(Refusal(ann, List(CommandKind.Transaction, CommandKind.Set, 30)));
        Assert.Equal(0, Passed(ann, 1));
        _time.Advance(TimeSpan.FromMilliseconds(2_000));
        Assert.Equal(0, Passed(ann, 1));
        _time.Advance(TimeSpan.FromMilliseconds(500));
        Assert.Equal(5, Passed(ann, 10));
    }

    [Fact]
    public void What_ends_a_transaction_is_not_held_up()
    {
        Caller ann = Known(new UserQuota(0, 1, 1));
        _used = new UserUsage(5, 5);
        Assert.Equal(1, Passed(ann, 5));
        foreach (CommandKind kind in (CommandKind[])
        [
            CommandKind.TransactionDecide, CommandKind.TransactionFinish, CommandKind.TransactionForget,
            CommandKind.TransactionRelease,
        ])
        {
            Assert.Null(Refusal(ann, Key(kind)));
        }
    }

    [Theory]
    [InlineData(5, 0, "quota of 5 keys", "it has 6")]
    [InlineData(0, 50, "quota of 50 bytes", "it has 60")]
    public void Who_has_reached_its_quota_adds_nothing_but_reads_and_deletes(
        long keys, long bytes, string limit, string used)
    {
        Caller ann = Known(new UserQuota(keys, bytes, 0));
        byte[][] adding =
        [
            Key(CommandKind.Set), Key(CommandKind.Increment), Key(CommandKind.Script),
            List(CommandKind.Transaction, CommandKind.Set, 1),
            List(CommandKind.Transaction, CommandKind.Increment, 1),
            List(CommandKind.TransactionPrepare, CommandKind.Set, 1),
        ];
        byte[][] other =
        [
            Key(CommandKind.Get), Key(CommandKind.Delete), Key(CommandKind.Extend),
            List(CommandKind.Transaction, CommandKind.Delete, 2), List(CommandKind.Transaction, CommandKind.Get, 2),
            List(CommandKind.TransactionPrepare, CommandKind.Delete, 1),
        ];
        _used = new UserUsage(4, 49);
        Assert.All(adding, command => Assert.Null(Refusal(ann, command)));
        _used = new UserUsage(6, 60);
        Assert.All(adding, command => Assert.Null(Refusal(ann, command)));
        _time.Advance(TimeSpan.FromMilliseconds(1));
        Assert.All(adding, command =>
        {
            string refusal = Refusal(ann, command, OutcomeStatus.QuotaExceeded)!;
            Assert.Contains(limit, refusal);
            Assert.Contains(used, refusal);
        });
        Assert.All(other, command => Assert.Null(Refusal(ann, command)));
        Publish(new UserRecord(AnnsAccount, "ann") { Roles = ["admin"], Quota = new UserQuota(7, 61, 0) });
        Assert.All(adding, command => Assert.Null(Refusal(ann, command)));
    }

    [Fact]
    public void A_write_is_charged_to_its_user_whatever_the_client_sent()
    {
        Caller ann = Known(default);
        Assert.Equal(AnnsAccount, AccountOf(_gate.Look(ann), CommandKind.Set, sent: 0));
        Assert.Equal(AnnsAccount, AccountOf(_gate.Look(ann), CommandKind.Set, sent: 7));
        Assert.Equal(0, AccountOf(_gate.Look(ann), CommandKind.Get, sent: 7));
        Assert.Equal(7, AccountOf(_gate.Look(Caller.Node), CommandKind.Set, sent: 7));
        Assert.Equal(0, AccountOf(default, CommandKind.Set, sent: 7));
        AccessGate open = new(new AccessState(isRequired: false, _time));
        Assert.Equal(0, AccountOf(open.Look(Caller.Anybody), CommandKind.Set, sent: 7));
    }

    [Fact]
    public void Only_what_names_no_account_passes_unseen()
    {
        Assert.True(Command.TryRead(Key(CommandKind.Set), out Command command));
        Assert.True(default(AccessPass).Passes(in command));
        command.Account = 7;
        Assert.False(default(AccessPass).Passes(in command));
        Assert.False(_gate.Look(Known(default)).Passes(in command));
    }

    [Fact]
    public void A_user_after_the_last_account_has_none()
    {
        Assert.Equal(65_535, UserQuotas.AccountOf(new UserRecord(65_535, "a")));
        Assert.Equal(0, UserQuotas.AccountOf(new UserRecord(65_536, "a")));
        Assert.Equal(0, UserQuotas.AccountOf(new UserRecord(65_536 + AnnsAccount, "a")));
        Assert.Equal(default, _access.Quotas.UsageOf(new UserRecord(65_536, "a")));
    }

    [Fact]
    public void An_admission_allocates_nothing()
    {
        Caller ann = Known(new UserQuota(1_000, 1_000, 10_000_000));
        byte[] set = Key(CommandKind.Set);
        int refused = 0;
        Assert.Equal(0, AllocatedBytes.LeastOf(Admit));
        Assert.Equal(0, refused);

        void Admit()
        {
            Command.TryRead(set, out Command command);
            refused += _gate.Look(ann).Admit(in command, set, out _) is null ? 0 : 1;
        }
    }

    private Caller Known(UserQuota quota)
    {
        Publish(new UserRecord(AnnsAccount, "ann") { Roles = ["admin"], Quota = quota });
        return new Caller(_access, Ann(), CallerMethod.Password);
    }

    private UserRecord Ann() => _access.Book.FindUser((uint)AnnsAccount)!;

    private void Publish(UserRecord user) =>
        _access.Publish(AccessRows.Empty with { Version = ++_version, Rows = [AccessRowFormat.Of(user)] });

    private int Passed(Caller caller, int count)
    {
        byte[] get = Key(CommandKind.Get);
        int passed = 0;
        for (int i = 0; i < count; i++)
        {
            passed += _gate.Look(caller).Admit(Read(get), get, out _) is null ? 1 : 0;
        }

        return passed;
    }

    private string? Refusal(Caller caller, byte[] bytes, OutcomeStatus expected = OutcomeStatus.Unset)
    {
        string? refusal = _gate.Look(caller).Admit(Read(bytes), bytes, out OutcomeStatus status);
        Assert.Equal(expected, status);
        return refusal;
    }

    private static ushort AccountOf(AccessPass pass, CommandKind kind, ushort sent)
    {
        byte[] bytes = Key(kind);
        Command.SetAccount(bytes, sent);
        Assert.Null(pass.Admit(Read(bytes), bytes, out _));
        return Read(bytes).Account;
    }

    private static Command Read(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        return command;
    }

    private static byte[] Key(CommandKind kind) => Encode(new Command
    {
        Kind = kind,
        Durability = Durability.Persistent,
        Key = "bucket/key"u8,
    });

    private static byte[] List(CommandKind kind, CommandKind item, int count)
    {
        ByteBuffer value = ByteBuffer.Rent();
        if (kind == CommandKind.TransactionPrepare)
        {
            PrepareBody.WriteHeader(value, new TransactionId(1, 2), 1_000, PrepareFlags.None, "bucket/key"u8, 0);
        }

        TransactionBody.WriteHeader(value, 0, count, 0);
        for (int i = 0; i < count; i++)
        {
            CommandList.Append(value, new Command
            {
                Kind = item,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes($"bucket/key{i}"),
            });
        }

        byte[] bytes = Encode(new Command
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Key = "bucket/key"u8,
            Value = value.Written,
        });
        value.Return();
        return bytes;
    }

    private static byte[] Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
