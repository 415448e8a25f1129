using System.Text;
using Kahuna.Wire;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Wire;

/// <summary>Each refusal of the door, with the words that name field, limit and value.</summary>
public sealed class CommandCheckTests
{
    private const int ValueMax = 100;

    private static readonly byte[] s_key = "app/key"u8.ToArray();

    [Theory]
    [InlineData(0, "kind is not set")]
    [InlineData(19, "kind is 19")]
    [InlineData(0x40, "only servers")]
    [InlineData(0x7F, "only servers")]
    [InlineData(0x8F, "kind is 143")]
    [InlineData(0xFF, "kind is 255")]
    public void Kinds_that_are_not_for_clients_are_refused(int kind, string words) =>
        Refused(Of((CommandKind)kind), words);

    [Theory]
    [InlineData(0, OutcomeStatus.InvalidArgument, "durability is not set")]
    [InlineData(3, OutcomeStatus.InvalidArgument, "durability is 3")]
    [InlineData(255, OutcomeStatus.InvalidArgument, "durability is 255")]
    internal void Durabilities_other_than_persistent_are_refused(int durability, OutcomeStatus expected, string words)
    {
        foreach (CommandKind kind in new[] { CommandKind.Set, CommandKind.Get })
        {
            Command command = Of(kind);
            command.Durability = (Durability)durability;
            Refused(command, words, expected);
        }
    }

    [Fact]
    public void Keys_outside_their_limits_are_refused()
    {
        Command command = Of(CommandKind.Get);
        command.Key = default;
        Refused(command, "key is empty; it must have 1 to 1,024 bytes");
        command.Key = Encoding.UTF8.GetBytes(new string('k', 1030));
        Refused(command, "key is 1,030 bytes; the limit is 1,024");
        command.Key = [(byte)'a', (byte)'b', 0xC3, (byte)'c'];
        Refused(command, "key is not valid UTF-8: the byte at offset 2");
        command.Key = [0xED, 0xA0, 0x80];
        Refused(command, "offset 0");
        command.Key = "__kahuna"u8;
        Refused(command, "__kahuna, which is reserved");
        command.Key = "__kahuna/x"u8;
        Refused(command, "__kahuna, which is reserved");
    }

    [Fact]
    public void Keys_at_their_limits_are_good()
    {
        Command command = Of(CommandKind.Get);
        command.Key = Encoding.UTF8.GetBytes(new string('k', 1024));
        Good(command);
        command.Key = "x"u8;
        Good(command);
        command.Key = "__kahun"u8;
        Good(command);
        command.Key = "a/__kahuna"u8;
        Good(command);
        command.Key = Encoding.UTF8.GetBytes("clé/鍵/🔑");
        Good(command);
        command.Key = [0];
        Good(command);
    }

    [Fact]
    public void Values_over_the_limit_are_refused()
    {
        Command command = Of(CommandKind.Set);
        command.Value = new byte[ValueMax];
        Good(command);
        command.Value = new byte[ValueMax + 1];
        Refused(command, "value is 101 bytes; the limit is 100");
        command.Value = default;
        command.Flags = CommandFlags.IfValue;
        command.ComparedValue = new byte[ValueMax];
        Good(command);
        command.ComparedValue = new byte[1234];
        Refused(command, "if_value is 1,234 bytes; the limit is 100");
    }

    [Theory]
    [InlineData(CommandKind.Set, long.MinValue, false)]
    [InlineData(CommandKind.Set, -1, false)]
    [InlineData(CommandKind.Set, 0, false)]
    [InlineData(CommandKind.Set, 1, true)]
    [InlineData(CommandKind.Set, Limits.TtlMsMax, true)]
    [InlineData(CommandKind.Set, Limits.TtlMsMax + 1, false)]
    [InlineData(CommandKind.Extend, -1, false)]
    [InlineData(CommandKind.Extend, 0, true)]
    [InlineData(CommandKind.Extend, Limits.TtlMsMax, true)]
    [InlineData(CommandKind.Extend, long.MaxValue, false)]
    internal void Times_to_live_have_bounds(CommandKind kind, long ttlMs, bool good)
    {
        Command command = Of(kind, CommandFlags.Ttl);
        command.TtlMs = ttlMs;
        if (good)
        {
            Good(command);
        }
        else
        {
            Refused(command, "ttl_ms is ");
            Refused(command, "3,153,600,000,000");
        }
    }

    [Fact]
    public void What_an_operation_needs_must_be_there()
    {
        Refused(Of(CommandKind.Extend), "ttl_ms is not set; extend needs it");
        Refused(Of(CommandKind.Increment), "amount is not set; increment needs it");
        Good(Of(CommandKind.Increment, CommandFlags.Number));
    }

    [Theory]
    [InlineData(CommandFlags.IfAbsent | CommandFlags.IfPresent, "if_absent and if_present contradict")]
    [InlineData(CommandFlags.IfAbsent | CommandFlags.IfValue, "if_absent and if_value contradict")]
    [InlineData(CommandFlags.IfAbsent | CommandFlags.IfRevision, "if_absent and if_revision contradict")]
    [InlineData(CommandFlags.NullCompared, "if_value is carried")]
    internal void Contradictory_conditions_are_refused(CommandFlags flags, string words)
    {
        Command command = Of(CommandKind.Set, flags);
        command.ComparedRevision = 1;
        Refused(command, words);
    }

    [Fact]
    public void Revisions_begin_at_one()
    {
        Command command = Of(CommandKind.Set, CommandFlags.IfRevision);
        Refused(command, "if_revision is 0; it must be 1 or greater");
        command.ComparedRevision = -7;
        Refused(command, "if_revision is -7; it must be 1 or greater");
        command.ComparedRevision = 1;
        Good(command);
        command = Of(CommandKind.Get, CommandFlags.AtRevision);
        Refused(command, "at_revision is 0; it must be 1 or greater");
        command.AtRevision = 1;
        Good(command);
    }

    [Theory]
    [InlineData(CommandKind.Delete, "if_absent contradicts delete")]
    [InlineData(CommandKind.Extend, "if_absent contradicts extend")]
    [InlineData(CommandKind.Increment, "if_absent is not an option of increment")]
    [InlineData(CommandKind.Get, "if_absent is not an option of get")]
    [InlineData(CommandKind.Exists, "if_absent is not an option of exists")]
    internal void Absence_is_a_condition_of_set_only(CommandKind kind, string words) =>
        Refused(Of(kind, CommandFlags.IfAbsent), words);

    [Fact]
    public void Options_that_make_no_sense_for_the_operation_are_refused()
    {
        Dictionary<CommandKind, CommandFlags> allowed = new()
        {
            [CommandKind.Set] =
                CommandFlags.All
                    & ~(CommandFlags.AtRevision | CommandFlags.Number | CommandFlags.Keyed | CommandFlags.Positioned),
            [CommandKind.Delete] =
                CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.NullCompared
                | CommandFlags.WithoutHistory
                    | CommandFlags.ReturnPrevious
                    | CommandFlags.Session
                    | CommandFlags.Opening
                    | CommandFlags.Fenced,
            [CommandKind.Extend] =
                CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.NullCompared
                | CommandFlags.Ttl | CommandFlags.Session | CommandFlags.Opening | CommandFlags.Fenced,
            [CommandKind.Increment] =
                CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.NullCompared
                | CommandFlags.Number
                    | CommandFlags.WithoutHistory
                    | CommandFlags.Session
                    | CommandFlags.Opening
                    | CommandFlags.Fenced,
            [CommandKind.Get] = CommandFlags.AtRevision | CommandFlags.Positioned,
            [CommandKind.Exists] = CommandFlags.AtRevision | CommandFlags.Positioned,
        };
        foreach ((CommandKind kind, CommandFlags flags) in allowed)
        {
            CommandFlags needed = kind switch
            {
                CommandKind.Extend => CommandFlags.Ttl,
                CommandKind.Increment => CommandFlags.Number,
                _ => CommandFlags.None,
            };
            for (int bit = 0; bit < 16; bit++)
            {
                CommandFlags flag = (CommandFlags)(1 << bit);
                Command command = Of(kind, needed | flag | flag switch
                {
                    CommandFlags.NullCompared => CommandFlags.IfValue,
                    CommandFlags.Opening => CommandFlags.Session,
                    _ => CommandFlags.None,
                });
                command.Sequence = 1;
                command.TtlMs = command.AtRevision = command.ComparedRevision = command.FenceToken = 1;
                command.FenceName = flag == CommandFlags.Fenced ? "app/lock"u8 : default;
                bool good = CommandCheck.IsGood(command, ValueMax, out _, out string? sentence);
                Assert.True(good == ((flags & flag) != 0), $"{kind} with {flag}: {sentence}");
            }
        }

        Command get = Of(CommandKind.Get);
        get.Value = "v"u8;
        Refused(get, "value is 1 bytes; only set carries a value");
    }

    [Theory]
    [InlineData(0, 0, "a", 1_000, 1, "mode is 0; it must be 1 (exclusive), 2 (shared) or 3 (permit)")]
    [InlineData(4, 0, "a", 1_000, 1, "mode is 4; it must be 1 (exclusive), 2 (shared) or 3 (permit)")]
    [InlineData(1, 2, "a", 1_000, 1, "permits is not an option of a lock; it belongs to a semaphore")]
    [InlineData(3, 0, "a", 1_000, 1, "permits is 0; it must be 1 to 10,000")]
    [InlineData(3, 10_001, "a", 1_000, 1, "permits is 10,001; it must be 1 to 10,000")]
    [InlineData(1, 0, "", 1_000, 1, "owner is empty; it must have 1 to 256 bytes")]
    [InlineData(1, 0, "a", 0, 1, "lease_ms is 0; it must be 1 to 3,600,000")]
    [InlineData(1, 0, "a", -1, 1, "lease_ms is -1; it must be 1 to 3,600,000")]
    [InlineData(1, 0, "a", 3_600_001, 1, "lease_ms is 3,600,001; it must be 1 to 3,600,000")]
    [InlineData(1, 0, "a", 1_000, 0, "wait_ms is 0; it must be 1 to 86,400,000, or unset not to wait")]
    [InlineData(1, 0, "a", 1_000, -5, "wait_ms is -5; it must be 1 to 86,400,000, or unset not to wait")]
    [InlineData(1, 0, "a", 1_000, 86_400_001, "wait_ms is 86,400,001; it must be 1 to 86,400,000, or unset not to wait")]
    public void Claims_outside_of_their_limits_are_refused(
        int mode, int permits, string owner, long leaseMs, long waitMs, string words)
    {
        LockBody form =
            new() { Mode = (LockMode)mode, Permits = permits, Owner = System.Text.Encoding.UTF8.GetBytes(owner) };
        byte[] value = new byte[form.EncodedBytes];
        form.Write(value);
        Command acquire = Of(CommandKind.LockAcquire, CommandFlags.Ttl | CommandFlags.Number);
        acquire.Value = value;
        acquire.TtlMs = leaseMs;
        acquire.Number = waitMs;
        Refused(acquire, words);
    }

    [Fact]
    public void Owners_notes_tokens_and_fences_outside_of_their_limits_are_refused()
    {
        Command release = Of(CommandKind.LockRelease, CommandFlags.IfRevision);
        release.Value = new byte[257];
        release.ComparedRevision = 1;
        Refused(release, "owner is 257 bytes; the limit is 256");
        release.Value = new byte[] { 0xC3 };
        Refused(release, "owner is not valid UTF-8");
        release.Value = new byte[256];
        release.ComparedRevision = 0;
        Refused(release, "token is 0; it must be 1 or greater");
        Refused(Of(CommandKind.LockRelease) with { Value = "a"u8 }, "token is not set");
        Refused(
            Of(CommandKind.LockExtend, CommandFlags.IfRevision) with { Value = "a"u8, ComparedRevision = 1 },
            "lease_ms is not set");
        Refused(
            Of(CommandKind.LockAcquire, CommandFlags.Ttl) with { Value = "a"u8, TtlMs = 1 }, "the claim is malformed");
        Refused(
            Of(CommandKind.LockObserve, CommandFlags.Number) with { Number = 30_001 },
            "hold_ms is 30,001; it must be 0 to 30,000");

        LockBody form = new() { Mode = LockMode.Exclusive, Owner = "a"u8, Note = new byte[1_025] };
        byte[] value = new byte[form.EncodedBytes];
        form.Write(value);
        Refused(
            Of(CommandKind.LockAcquire, CommandFlags.Ttl) with { Value = value, TtlMs = 1 },
            "note is 1,025 bytes; the limit is 1,024");

        Command set = Of(CommandKind.Set, CommandFlags.Fenced);
        set.FenceToken = 0;
        set.FenceName = "app/lock"u8;
        Refused(set, "fence token is 0; it must be 1 or greater");
        set.FenceToken = 1;
        set.FenceName = default;
        Refused(set, "fence resource is 0 bytes; it must have 1 to 1,024");
        set.FenceName = (byte[])[.. "app/"u8, 0xFF];
        Refused(set, "fence resource is not valid UTF-8");
        set.FenceName = "other/lock"u8;
        Refused(set, "fence resource is in another bucket than the key");
    }

    [Fact]
    public void Numbers_that_make_no_sense_are_refused()
    {
        Command command = Of(CommandKind.Set, CommandFlags.Session);
        Refused(command, "sequence is 0; a session numbers its commands from 1 on");
        command.Sequence = ulong.MaxValue;
        Refused(command, "sequence is 18,446,744,073,709,551,615; the greatest is 9,223,372,036,854,775,807");
        command.Sequence = 1;
        Good(command);
        command.Lag = 1;
        Refused(command, "sequence is not above the number that it confirms");
        command.Sequence = 10_000;
        command.Lag = 4095;
        Good(command);
        command.Lag = 4096;
        Refused(command, "sequence is 4,096 above the lowest that is not confirmed; the limit is 4,095");
        command.Epoch = 1;
        Refused(command with { Lag = 0 }, "epoch is set; only ephemeral keys have one");
        Refused(Of(CommandKind.Set, CommandFlags.Opening), "opening is set, but no session is named");
        Refused(Of(CommandKind.Get, CommandFlags.Session), "session is not an option of get");
    }

    [Fact]
    public void Null_values_carry_no_bytes()
    {
        Command command = Of(CommandKind.Set, CommandFlags.NullValue);
        Good(command);
        command.Value = "abc"u8;
        Refused(command, "value is declared null but has 3 bytes");
        command = Of(CommandKind.Set, CommandFlags.IfValue | CommandFlags.NullCompared);
        Good(command);
        command.ComparedValue = "abcd"u8;
        Refused(command, "if_value is declared null but has 4 bytes");
    }

    [Fact]
    public void A_sentence_never_repeats_what_was_sent()
    {
        Command command = Of(CommandKind.Get);
        command.Key = [(byte)'s', (byte)'e', (byte)'c', (byte)'r', (byte)'e', (byte)'t', 0xFF, 0x00];
        Assert.False(CommandCheck.IsGood(command, ValueMax, out _, out string? sentence));
        Assert.DoesNotContain("secret", sentence, StringComparison.Ordinal);
        Assert.All(sentence!, c => Assert.InRange(c, ' ', '~'));
    }

    [Fact]
    public void Checking_a_good_command_allocates_nothing()
    {
        bool good = true;
        long allocated = AllocatedBytes.LeastOf(() =>
        {
            Command command = Of(CommandKind.Set, CommandFlags.IfValue | CommandFlags.Ttl);
            command.TtlMs = 5;
            command.Value = "value"u8;
            command.ComparedValue = "compared"u8;
            for (int i = 0; i < 1000; i++)
            {
                good &= CommandCheck.IsGood(command, ValueMax, out _, out _);
            }
        });
        Assert.True(good);
        Assert.Equal(0, allocated);
    }

    [Fact]
    public void Sentences_do_not_depend_on_the_culture()
    {
        System.Globalization.CultureInfo before = System.Globalization.CultureInfo.CurrentCulture;
        try
        {
            System.Globalization.CultureInfo.CurrentCulture = new System.Globalization.CultureInfo("de-DE");
            Command command = Of(CommandKind.Get);
            command.Key = new byte[1030];
            Refused(command, "key is 1,030 bytes; the limit is 1,024");
        }
        finally
        {
            System.Globalization.CultureInfo.CurrentCulture = before;
        }
    }

    private static Command Of(CommandKind kind, CommandFlags flags = CommandFlags.None) => new()
    {
        Kind = kind,
        Durability = Durability.Persistent,
        Flags = flags,
        Key = s_key,
    };

    private static void Good(scoped in Command command)
    {
        bool good = CommandCheck.IsGood(command, ValueMax, out OutcomeStatus status, out string? sentence);
        Assert.True(good, sentence);
        Assert.Equal(OutcomeStatus.Unset, status);
        Assert.Null(sentence);
    }

    private static void Refused(
        scoped in Command command, string words, OutcomeStatus expected = OutcomeStatus.InvalidArgument)
    {
        Assert.False(CommandCheck.IsGood(command, ValueMax, out OutcomeStatus status, out string? sentence));
        Assert.Equal(expected, status);
        Assert.Contains(words, sentence, StringComparison.Ordinal);
    }
}
