using System.Globalization;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Wire;

/// <summary>The one row of each command kind, and docs/wire-format.md, say the same.</summary>
public sealed class CommandKindsTests
{
    /// <summary>The first kind that only leaders propose, and the first of the meta group.</summary>
    private const byte FromLeaders = 0x40;
    private const byte OfMeta = 0x48;

    public static TheoryData<byte> Kinds =>
        [.. Enum.GetValues<CommandKind>().Except([CommandKind.Unset]).Select(kind => (byte)kind)];

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Every_kind_has_its_row(byte kind)
    {
        CommandKindRow row = CommandKinds.Of((CommandKind)kind);
        Assert.Equal((CommandKind)kind, row.Kind);
        Assert.NotEqual(CommandTable.None, row.Table);
        Assert.Equal($"{row.Kind}".ToLowerInvariant(), row.Name.Replace(" ", "", StringComparison.Ordinal));
        Assert.Equal(row.IsRead, kind >= 0x80);
        Assert.Equal(row.Has(CommandTraits.FromClients), kind < FromLeaders || row.IsRead);
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Flags_and_traits_fit_together(byte kind)
    {
        CommandKindRow row = CommandKinds.Of((CommandKind)kind);
        Assert.True(row.Has(CommandTraits.FromClients) || row.Flags == CommandFlags.None, "a leader's kind has flags");
        Assert.True(!row.IsRead || (row.Flags & CommandFlags.Session) == 0, "a read has no number");
        Assert.True(
            row.Has(CommandTraits.FromClients)
                && !row.IsRead == row.Flags.HasFlag(CommandFlags.Session | CommandFlags.Opening)
                || kind is >= FromLeaders and < 0x80,
            "a client's write has a number");
        Assert.True(!row.Has(CommandTraits.GrantsLease) || row.Flags.HasFlag(CommandFlags.Ttl), "a lease has a time");
        Assert.True(
            !row.Has(CommandTraits.MayBeHeld) || (row.IsRead && row.Flags.HasFlag(CommandFlags.Number)),
            "a long poll has a hold time");
        Assert.True(
            !row.Has(CommandTraits.IsList)
                || row.Flags.HasFlag(CommandFlags.Number | CommandFlags.AtRevision),
            "a list has a partition and a cursor");
    }

    [Fact]
    public void Names_differ_and_unknown_kinds_have_no_table()
    {
        CommandKind[] known = Enum.GetValues<CommandKind>();
        Assert.Equal(
            known.Length - 1,
            known.Where(kind => kind != CommandKind.Unset)
                .Select(kind => CommandKinds.Of(kind).Name)
                .Distinct()
                .Count());
        foreach (CommandKind unknown in Enumerable.Range(0, 256).Select(number => (CommandKind)number).Except(known))
        {
            Assert.Equal(
                (CommandTable.None, CommandTraits.None, CommandFlags.None),
                (CommandKinds.Of(unknown).Table, CommandKinds.Of(unknown).Traits, CommandKinds.Of(unknown).Flags));
        }
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void The_page_has_its_name_and_its_flags(byte kind)
    {
        CommandKindRow row = CommandKinds.Of((CommandKind)kind);
        if (row.Table == CommandTable.Meta)
        {
            // The page points to the source for these.
            Assert.True(kind is (>= OfMeta and <= 0x4F) or 0x51, $"{kind}");
        }
        else if (kind is >= FromLeaders and < 0x80)
        {
            WireFormatPage.Row(kind, $"*{row.Name}*");
        }
        else
        {
            string[] cells = WireFormatPage.Row(kind, row.Name.Replace(" ", "", StringComparison.Ordinal));
            CommandFlags flags = CommandFlags.None;
            foreach (string flag in cells[2].Replace("*", "", StringComparison.Ordinal).Split(
                ' ', StringSplitOptions.RemoveEmptyEntries))
            {
                flags |= (CommandFlags)int.Parse(
                    flag[2..], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture);
            }

            Assert.Equal(row.Flags, flags);
        }
    }
}
