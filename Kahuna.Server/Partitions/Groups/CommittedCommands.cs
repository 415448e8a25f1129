using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// The commands of an entry that is committed in a turn; their callers get answers where they wait here. A value.
/// </summary>
internal readonly struct CommittedCommands(AppliedCommands commands, RaftCore core, bool areAwaited) : ICommandSink
{
    public void Apply(scoped in Command command, KnownHash known) =>
        commands.Apply(core, command, known, areAwaited);
}
