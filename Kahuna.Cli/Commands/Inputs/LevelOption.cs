using System.CommandLine;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>The option that says of which durability a name is.</summary>
internal sealed class LevelOption : Option<bool>
{
    public LevelOption()
        : base("--ephemeral") => Description = "The name is an ephemeral one: replicated in memory, not on disk";

    /// <summary>The durability.</summary>
    public Durability Of(CommandCall call) => call.Get(this) ? Durability.Ephemeral : Durability.Persistent;

    /// <summary>The durability in a command line that may not be complete.</summary>
    public static Durability In(ParseResult parsed) =>
        parsed.CommandResult.Command.Options.OfType<LevelOption>().FirstOrDefault() is { } level
            && parsed.GetValue(level)
            ? Durability.Ephemeral
            : Durability.Persistent;
}
