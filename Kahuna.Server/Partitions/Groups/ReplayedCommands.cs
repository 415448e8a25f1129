using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>The commands of an entry that a start replays: nobody waits for them. A value.</summary>
internal readonly struct ReplayedCommands(StateMachine state) : ICommandSink
{
    public void Apply(scoped in Command command, KnownHash known) => state.Apply(command, null, known);
}
