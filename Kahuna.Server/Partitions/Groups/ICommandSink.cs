using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Takes the commands of a committed entry, one after the other. Implemented by structs, so that a call costs no more
/// than one of a method that is known.
/// </summary>
internal interface ICommandSink
{
    /// <summary>Applies one command.</summary>
    /// <param name="command">The command.</param>
    /// <param name="known">The hash of its key, where it is known.</param>
    void Apply(scoped in Command command, KnownHash known);
}
