using System.CommandLine;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>The option that says of which durability a name is.</summary>
internal sealed class LevelOption : Option<bool>
{
    public LevelOption()
        : base("--ephemeral") => Description = "The name is an ephemeral one: replicated in memory, not on disk";

    /// <summary>The durability.</summary>
    public Durability Of(CommandCall call) => call.Get(this) ? Durability.Ephemeral : Durability.Persistent;
}
