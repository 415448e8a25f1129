using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sessions;

/// <summary>
/// A number belongs to one command: another one, in whatever it differs, is refused and changes nothing.
/// </summary>
public sealed class NumberReuseTests
{
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };

    private readonly StateDriver _state = new();

    [Fact]
    public void A_number_of_another_command_is_refused()
    {
        _state.Numbered(new TestCommand(CommandKind.Set, "k", "v"), 1, 1);
        foreach (TestCommand other in new TestCommand[]
        {
            s_increment,
            new(CommandKind.Set, "k", "w"),
            new(CommandKind.Set, "l", "v"),
            new(CommandKind.Set, "k", "v") { Flags = CommandFlags.Ttl, TtlMs = 5 },
            new(CommandKind.Set, "k", "v") { Flags = CommandFlags.IfAbsent },
            new(CommandKind.Delete, "k"),
        })
        {
            Assert.Equal(OutcomeStatus.NumberReused, _state.Numbered(other, 1, 1).Status);
        }

        Assert.Equal(1, _state.Numbered(new TestCommand(CommandKind.Set, "k", "v"), 1, 1, opening: false).Revision);
        Assert.Equal(1, _state.Get("k").Revision);
    }

    [Theory]
    [InlineData("value")]
    [InlineData("no value")]
    [InlineData("compared value")]
    [InlineData("null compared")]
    [InlineData("value and compared value")]
    [InlineData("compared revision")]
    [InlineData("time to live")]
    [InlineData("both numbers")]
    [InlineData("key")]
    [InlineData("flag")]
    [InlineData("kind")]
    public void Each_field_alone_makes_it_another_command(string difference)
    {
        TestCommand command = new(CommandKind.Set, "k", "v")
        {
            Flags = CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.Ttl,
            Compared = "u",
            ComparedRevision = 7,
            TtlMs = 5_000,
        };
        TestCommand other = difference switch
        {
            "value" => command with { Value = "w" },
            "no value" => command with { Value = "" },
            "compared value" => command with { Compared = "" },
            "null compared" => command with { Compared = null },
            "value and compared value" => command with { Value = command.Compared, Compared = command.Value },
            "compared revision" => command with { ComparedRevision = 8 },
            "time to live" => command with { TtlMs = 5_001 },
            "both numbers" => command with { TtlMs = command.ComparedRevision, ComparedRevision = command.TtlMs },
            "key" => command with { Key = "l" },
            "flag" => command with { Flags = command.Flags | CommandFlags.WithoutHistory },
            _ => command with { Kind = CommandKind.Delete },
        };
        Answer first = _state.Numbered(command, 1, 1);
        Assert.Equal(OutcomeStatus.NumberReused, _state.Numbered(other, 1, 1).Status);
        Assert.Equal(first, _state.Numbered(command, 1, 1, opening: false));
    }

    [Fact]
    public void Another_amount_is_another_command()
    {
        _state.Numbered(s_increment, 1, 1);
        Assert.Equal(OutcomeStatus.NumberReused, _state.Numbered(s_increment with { Number = 2 }, 1, 1).Status);
        Assert.Equal(1, _state.Numbered(s_increment, 1, 1).Number);
    }
}
