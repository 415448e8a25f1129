using Kahuna.Server.Access;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Access;

/// <summary>What each kind of command needs, and what a refusal says.</summary>
public sealed class CommandRightsTests
{
    private const CommandFlags AnyCondition = CommandFlags.IfAbsent
        | CommandFlags.IfPresent
        | CommandFlags.IfValue
        | CommandFlags.IfRevision
        | CommandFlags.NullCompared;

    public static TheoryData<byte> Kinds => [.. Enumerable.Range(0, 256).Select(static kind => (byte)kind)];

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Every_kind_of_clients_has_a_rule_and_no_other_is_allowed(byte number)
    {
        CommandKind kind = (CommandKind)number;
        AccessCommand? sample = AccessCommand.Sample(kind);
        Assert.True(sample is not null, $"{kind} has items; say here what they look like");
        Assert.Equal(
            CommandKinds.Has(kind, CommandTraits.FromClients),
            sample.Refusal(Rights.All) is null);
        Assert.NotNull(sample.Refusal(Rights.None));
    }

    [Theory]
    [InlineData(CommandKind.Set, CommandFlags.None, Permissions.Write)]
    [InlineData(CommandKind.Delete, CommandFlags.None, Permissions.Write)]
    [InlineData(CommandKind.Extend, CommandFlags.None, Permissions.Write)]
    [InlineData(CommandKind.Set, CommandFlags.IfAbsent, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Set, CommandFlags.IfPresent, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Set, CommandFlags.IfValue, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Set, CommandFlags.NullCompared, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Delete, CommandFlags.IfRevision, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Extend, CommandFlags.IfPresent, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Set, CommandFlags.ReturnPrevious, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Delete, CommandFlags.ReturnPrevious, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Increment, CommandFlags.None, Permissions.Write | Permissions.Read)]
    [InlineData(CommandKind.Get, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.Exists, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.KeyRange, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.CutOpen, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.CutConfirm, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.CutEnd, CommandFlags.None, Permissions.Read)]
    [InlineData(CommandKind.KeyRangeDelete, CommandFlags.None, Permissions.Read | Permissions.Write)]
    [InlineData(CommandKind.TransactionHold, CommandFlags.None, Permissions.Transaction | Permissions.Read)]
    [InlineData(CommandKind.TransactionRelease, CommandFlags.None, Permissions.Transaction)]
    [InlineData(CommandKind.TransactionDecide, CommandFlags.None, Permissions.Transaction)]
    [InlineData(CommandKind.TransactionFinish, CommandFlags.None, Permissions.Transaction)]
    [InlineData(CommandKind.TransactionForget, CommandFlags.None, Permissions.Transaction)]
    [InlineData(CommandKind.Script, CommandFlags.None, Permissions.Script | Permissions.Read | Permissions.Write)]
    [InlineData(CommandKind.SequenceCreate, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.SequenceUpdate, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.SequenceDelete, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.SequenceNext, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.SequenceGet, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.SequenceList, CommandFlags.None, Permissions.Sequence)]
    [InlineData(CommandKind.LockAcquire, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockExtend, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockRelease, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockGet, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockAwait, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockObserve, CommandFlags.None, Permissions.Lock)]
    [InlineData(CommandKind.LockList, CommandFlags.None, Permissions.Lock)]
    public void A_kind_needs_exactly_these(object kind, object flags, object needs)
    {
        AccessCommand command = new((CommandKind)kind, "k") { Flags = (CommandFlags)flags };
        AssertNeeds(command, (Permissions)needs);
    }

    [Theory]
    [InlineData(CommandKind.Get, Permissions.Read)]
    [InlineData(CommandKind.Exists, Permissions.Read)]
    [InlineData(CommandKind.Set, Permissions.Write)]
    [InlineData(CommandKind.Delete, Permissions.Write)]
    [InlineData(CommandKind.Extend, Permissions.Write)]
    [InlineData(CommandKind.Increment, Permissions.Read | Permissions.Write)]
    [InlineData(CommandKind.KeyRange, Permissions.Read)]
    public void An_item_needs_what_it_needs_alone_and_transaction(object kind, object needs)
    {
        AccessCommand item = new((CommandKind)kind, "k")
        {
            End = (CommandKind)kind == CommandKind.KeyRange ? "l" : null,
        };
        foreach (CommandKind outer in (CommandKind[])[CommandKind.Transaction, CommandKind.TransactionPrepare])
        {
            AssertNeeds(new AccessCommand(outer, "k") { Items = [item] }, (Permissions)needs | Permissions.Transaction);
        }
    }

    [Fact]
    public void Every_item_is_looked_at()
    {
        Rights rights = RightsOn("a", Permissions.Data);
        foreach (CommandKind outer in (CommandKind[])
            [CommandKind.Transaction, CommandKind.TransactionPrepare, CommandKind.GetMany])
        {
            AccessCommand good = new(CommandKind.Get, "a1");
            AccessCommand bad = new(CommandKind.Get, "b1");
            Assert.Null(new AccessCommand(outer, "a1") { Items = [good, good, good] }.Refusal(rights));
            Assert.NotNull(new AccessCommand(outer, "a1") { Items = [bad, good, good] }.Refusal(rights));
            Assert.NotNull(new AccessCommand(outer, "a1") { Items = [good, good, bad] }.Refusal(rights));
        }
    }

    [Theory]
    [InlineData(CommandKind.Transaction)]
    [InlineData(CommandKind.TransactionPrepare)]
    [InlineData(CommandKind.GetMany)]
    [InlineData(CommandKind.Script)]
    [InlineData(CommandKind.LockGet)]
    [InlineData(CommandKind.KeyRangeDelete)]
    [InlineData(CommandKind.ExpireSweep)]
    public void What_is_no_item_is_refused_as_one(object kind)
    {
        AccessCommand item = AccessCommand.Sample((CommandKind)kind)!;
        Assert.NotNull(new AccessCommand(CommandKind.Transaction, "k") { Items = [item] }.Refusal(Rights.All));
        Assert.NotNull(new AccessCommand(CommandKind.GetMany, "k") { Items = [item] }.Refusal(Rights.All));
    }

    [Theory]
    [InlineData(CommandKind.Transaction)]
    [InlineData(CommandKind.TransactionPrepare)]
    [InlineData(CommandKind.GetMany)]
    public void Bytes_that_are_no_items_are_refused(object kind)
    {
        AccessCommand command = new((CommandKind)kind, "k") { Value = [1, 2, 3] };
        Assert.NotNull(command.Refusal(Rights.All));
    }

    [Fact]
    public void An_item_is_judged_by_its_own_durability()
    {
        AccessCommand item = new(CommandKind.Get, "k") { Durability = Durability.Ephemeral };
        AccessCommand list = new(CommandKind.GetMany, "k") { Items = [item] };
        Grant grant = Grant("k", Permissions.Read, GrantScope.Key);
        Assert.NotNull(list.Refusal(Rights.Of([grant with { Levels = GrantLevels.Persistent }])));
        Assert.Null(list.Refusal(Rights.Of([grant with { Levels = GrantLevels.Ephemeral }])));
    }

    [Fact]
    public void The_range_without_names_needs_its_permission_on_some_name()
    {
        AccessCommand now = new(CommandKind.KeyRange, "") { End = "" };
        Assert.Null(now.Refusal(RightsOn("k", Permissions.Read)));
        Assert.NotNull(now.Refusal(RightsOn("k", Permissions.Write)));
        Assert.Null((now with { Key = "0", End = "0" }).Refusal(RightsOn("k", Permissions.Read)));
        Assert.NotNull((now with { End = "a" }).Refusal(RightsOn("k", Permissions.Read)));
        AccessCommand cut = new(CommandKind.CutEnd, "0") { End = "0" };
        Assert.NotNull(cut.Refusal(RightsOn("k", Permissions.Read)));
    }

    [Fact]
    public void A_fence_needs_its_lock_in_the_durability_of_the_write()
    {
        AccessCommand write = new(CommandKind.Set, "a/k") { Fence = "a/l" };
        Grant data = Grant("a/k", Permissions.Write, GrantScope.Key);
        Assert.NotNull(write.Refusal(Rights.Of([data])));
        Assert.Null(write.Refusal(Rights.Of([data, Grant("a/l", Permissions.Lock, GrantScope.Key)])));
        Grant ephemeral = Grant("a/l", Permissions.Lock, GrantScope.Key) with { Levels = GrantLevels.Ephemeral };
        Assert.NotNull(write.Refusal(Rights.Of([data, ephemeral])));
        Assert.Null((write with { Durability = Durability.Ephemeral }).Refusal(Rights.Of([data, ephemeral])));
        AccessCommand decide = new(CommandKind.TransactionDecide, "a/l") { Fence = "a/l" };
        Assert.NotNull(decide.Refusal(RightsOn("", Permissions.Transaction)));
        Assert.Null(decide.Refusal(RightsOn("", Permissions.Transaction | Permissions.Lock)));
    }

    [Fact]
    public void A_script_needs_the_whole_bucket()
    {
        AccessCommand script = new(CommandKind.Script, "a/k");
        Assert.NotNull(script.Refusal(Rights.Of([Grant("a/k", Permissions.Data, GrantScope.Key)])));
        Assert.NotNull(script.Refusal(Rights.Of([Grant("a/k", Permissions.Data, GrantScope.Prefix)])));
        Assert.NotNull(script.Refusal(Rights.Of([Grant("a/k", Permissions.Data, GrantScope.Bucket)])));
        Assert.Null(script.Refusal(Rights.Of([Grant("a", Permissions.Data, GrantScope.Bucket)])));
        AccessCommand top = new(CommandKind.Script, "a");
        Assert.NotNull(top.Refusal(Rights.Of([Grant("a/", Permissions.Data, GrantScope.Prefix)])));
        Assert.Null(top.Refusal(Rights.Of([Grant("a", Permissions.Data, GrantScope.Bucket)])));
    }

    [Fact]
    public void A_list_needs_the_whole_prefix()
    {
        foreach (CommandKind kind in (CommandKind[])[CommandKind.LockList, CommandKind.SequenceList])
        {
            Assert.Null(new AccessCommand(kind, "a/").Refusal(RightsOn("a/", Permissions.Data)));
            Assert.NotNull(new AccessCommand(kind, "a").Refusal(RightsOn("a/", Permissions.Data)));
            Assert.NotNull(new AccessCommand(kind, "").Refusal(RightsOn("a/", Permissions.Data)));
        }
    }

    [Theory]
    [InlineData(CommandKind.Set, "a/b", "The permission write is missing on the persistent key \"a/b\".")]
    [InlineData(CommandKind.LockGet, "l", "The permission lock is missing on the persistent lock \"l\".")]
    [InlineData(
        CommandKind.SequenceNext, "s", "The permission sequence is missing on the persistent sequence \"s\".")]
    [InlineData(CommandKind.KeyRange, "", "The permission read is missing on all persistent keys.")]
    [InlineData(CommandKind.KeyRange, "a", "The permission read is missing on the persistent keys from \"a\" on.")]
    [InlineData(
        CommandKind.LockList, "a", "The permission lock is missing on the persistent locks that begin with \"a\".")]
    [InlineData(CommandKind.LockList, "", "The permission lock is missing on all persistent locks.")]
    [InlineData(
        CommandKind.Script, "a/b", "The permission script is missing on the persistent keys of the bucket \"a\".")]
    [InlineData(CommandKind.TransactionForget, "a", "The permission transaction is missing on all names.")]
    [InlineData(CommandKind.Evict, "a", "No permission is known that allows this kind of command.")]
    [InlineData(
        CommandKind.Set,
        "x\r\n2026 \u001b[2J\u202e\"\\",
        "The permission write is missing on the persistent key "
            + "\"x\\u{000D}\\u{000A}2026 \\u{001B}[2J\\u{202E}\\\"\\\\\".")]
    public void The_sentence_names_what_is_missing_and_what_the_caller_sent(object kind, string key, string sentence) =>
        Assert.Equal(sentence, new AccessCommand((CommandKind)kind, key).Refusal(Rights.None));

    [Fact]
    public void The_sentence_of_a_range_says_where_it_ends()
    {
        Assert.Equal(
            "The permission read is missing on the ephemeral keys from \"a\" up to \"c\".",
            new AccessCommand(CommandKind.KeyRange, "a") { End = "c", Durability = Durability.Ephemeral }
                .Refusal(Rights.None));
        Assert.Equal(
            "The permission read is missing on the persistent keys that begin with \"a/\".",
            new AccessCommand(CommandKind.KeyRange, "a/") { End = "a0" }.Refusal(Rights.None));
    }

    [Fact]
    public void The_sentence_names_the_first_permission_that_is_missing()
    {
        AccessCommand command = new(CommandKind.Set, "a") { Flags = CommandFlags.IfPresent };
        Assert.StartsWith("The permission read is missing", command.Refusal(RightsOn("a", Permissions.Write)));
        Assert.StartsWith("The permission write is missing", command.Refusal(RightsOn("a", Permissions.Read)));
    }

    [Fact]
    public void A_long_name_is_cut()
    {
        string sentence = new AccessCommand(CommandKind.Set, new string('a', 1_000)).Refusal(Rights.None)!;
        Assert.Contains(new string('a', QuotedName.CharactersMax) + "…\"", sentence);
        Assert.DoesNotContain(new string('a', QuotedName.CharactersMax + 1), sentence);
    }

    /// <summary>
    /// What got past the checks of peers, as it would look here: etcd's GHSA-xg4h-6gfc-h4m8 (a right on one key opened
    /// all keys behind it), GHSA-rfx7-8w68-q57q (a transaction inside of a transaction), GHSA-x35m-3gp4-4fh5 (the
    /// previous value of a put inside of a transaction).
    /// </summary>
    [Fact]
    public void Ways_around_the_checks_of_peers_are_closed()
    {
        Rights oneKey = Rights.Of([Grant("a", Permissions.Data, GrantScope.Key)]);
        Assert.NotNull(new AccessCommand(CommandKind.KeyRange, "a").Refusal(oneKey));
        Assert.NotNull(new AccessCommand(CommandKind.KeyRange, "a") { End = "b" }.Refusal(oneKey));
        Assert.Null(new AccessCommand(CommandKind.KeyRange, "a") { End = "a\0" }.Refusal(oneKey));

        AccessCommand inner = new(CommandKind.Transaction, "b") { Items = [new AccessCommand(CommandKind.Get, "b")] };
        Assert.NotNull(new AccessCommand(CommandKind.Transaction, "a") { Items = [inner] }.Refusal(Rights.All));

        Rights writer = RightsOn("a", Permissions.Write | Permissions.Transaction);
        AccessCommand put = new(CommandKind.Set, "a");
        Assert.Null(new AccessCommand(CommandKind.Transaction, "a") { Items = [put] }.Refusal(writer));
        AccessCommand withPrevious = put with { Flags = CommandFlags.ReturnPrevious };
        Assert.NotNull(new AccessCommand(CommandKind.Transaction, "a") { Items = [withPrevious] }.Refusal(writer));
        AccessCommand condition = new(CommandKind.Exists, "a") { Flags = AnyCondition & ~CommandFlags.IfValue };
        Assert.NotNull(new AccessCommand(CommandKind.Transaction, "a") { Items = [condition, put] }.Refusal(writer));
    }

    private static void AssertNeeds(AccessCommand command, Permissions needs)
    {
        Assert.Null(command.Refusal(RightsOn("", needs)));
        for (int bit = 0; bit < 8; bit++)
        {
            Permissions one = (Permissions)(1 << bit);
            if ((needs & one) != 0)
            {
                Assert.NotNull(command.Refusal(RightsOn("", (Permissions.Data | Permissions.Admin) & ~one)));
            }
        }
    }

    private static Rights RightsOn(string prefix, Permissions permissions) =>
        Rights.Of([Grant(prefix, permissions, GrantScope.Prefix)]);

    private static Grant Grant(string name, Permissions permissions, GrantScope scope) =>
        new(permissions, GrantLevels.Both, scope, AccessCommand.Bytes(name));
}
