using System.CommandLine;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>An argument that is the name of a key, or its beginning; completion asks the cluster for names.</summary>
internal sealed class KeyArgument : Argument<string>
{
    public KeyArgument(string description, string name = "key")
        : base(name) => Description = description;

    /// <summary>The beginning of names; without it all.</summary>
    public static KeyArgument Prefix() => new("Beginning of the names; all when it is left out", "prefix")
    {
        Arity = ArgumentArity.ZeroOrOne,
        DefaultValueFactory = static _ => "",
    };
}
