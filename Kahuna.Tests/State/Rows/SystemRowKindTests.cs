using Kahuna.Server.State.Rows;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Rows;

/// <summary>The register of the system's rows, and the table of each kind of command.</summary>
public sealed class SystemRowKindTests
{
    [Fact]
    public void Every_kind_of_row_is_in_the_page_of_the_format()
    {
        string page = File.ReadAllText(Repository.FullPath("docs/state-format.md"));
        foreach (SystemRowKind kind in SystemRowKind.All)
        {
            Assert.Contains($"`0xFF {(char)kind.Letter}`", page, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void A_name_tells_its_kind()
    {
        foreach (SystemRowKind kind in SystemRowKind.All)
        {
            Assert.Same(kind, SystemRowKind.Of([.. kind.ToName(), 1, 2]));
        }

        Assert.Null(SystemRowKind.Of("S/key"u8));
        Assert.Null(SystemRowKind.Of([SystemRowKind.Reserved, (byte)'z']));
        Assert.Null(SystemRowKind.Of([SystemRowKind.Reserved]));
    }

    [Fact]
    public void Rows_of_unknown_kinds_and_with_wrong_flags_are_no_records()
    {
        byte[] sequence = [.. SystemRowKind.Sequence.ToName(), (byte)'a'];
        Assert.True(SystemRowKind.IsWellFormed(KeyEntryFlags.System, sequence, 50, hasTime: false));
        Assert.False(SystemRowKind.IsWellFormed(KeyEntryFlags.System, sequence, 50, hasTime: true));
        Assert.False(
            SystemRowKind.IsWellFormed(KeyEntryFlags.System | KeyEntryFlags.Claim, sequence, 50, hasTime: true));
        Assert.False(
            SystemRowKind.IsWellFormed(KeyEntryFlags.System, [SystemRowKind.Reserved, (byte)'z'], 8, hasTime: false));
        Assert.False(SystemRowKind.IsWellFormed(KeyEntryFlags.Held, "key"u8, 8, hasTime: false));
    }

    [Fact]
    public void Every_command_has_a_table()
    {
        foreach (CommandKind kind in Enum.GetValues<CommandKind>())
        {
            Assert.Equal(kind == CommandKind.Unset, CommandKinds.Of(kind).Table == CommandTable.None);
        }

        Assert.Equal(CommandTable.None, CommandKinds.Of((CommandKind)0xFF).Table);
    }
}
