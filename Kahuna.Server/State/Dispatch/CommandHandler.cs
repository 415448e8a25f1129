using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Dispatch;

/// <summary>
/// One table of the state, as the state machine calls it: it carries out the commands of its kinds and answers their
/// reads. Owned by the state; not thread-safe.
/// </summary>
internal abstract class CommandHandler
{
    /// <summary>Carries out one mutation at a cluster time and gives its outcome, if it has one.</summary>
    /// <param name="command">A command of a kind that this table has.</param>
    /// <param name="timeMs">Cluster time of the entry.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    /// <param name="answer">Takes the outcome.</param>
    public abstract void Apply(scoped in Command command, long timeMs, KnownHash known, CommandAnswer answer);

    /// <summary>
    /// Answers one read and appends its encoded outcome. False when the answer may be held back, because there is
    /// nothing to say yet.
    /// </summary>
    /// <param name="command">A read of a kind that this table has.</param>
    /// <param name="timeMs">Cluster time of the last applied entry.</param>
    /// <param name="nowMs">Cluster time by the leader's clock.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    /// <param name="outcome">Takes the outcome.</param>
    public virtual bool Read(scoped in Command command, long timeMs, long nowMs, KnownHash known, ByteBuffer outcome) =>
        throw NoSuchCommand(command.Kind);

    /// <summary>The log holds a command that this version does not apply.</summary>
    protected static InvariantException NoSuchCommand(CommandKind kind) =>
        new($"Invariant broken: a table carries out only its own commands; kind {(byte)kind} is none.");
}
