using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Dispatch;

/// <summary>
/// One table of the state, as the state machine calls it: it carries out the commands of its kinds and answers their
/// reads. Owned by the state; not thread-safe.
/// </summary>
internal abstract class CommandHandler
{
    /// <summary>Carries out one mutation at a cluster time and gives its outcome, if it has one.</summary>
    /// <param name="command">A command of a kind that this table has.</param>
    /// <param name="time">Cluster time of the entry.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    /// <param name="answer">Takes the outcome.</param>
    public abstract void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer);

    /// <summary>
    /// Answers one read and appends its encoded outcome. False when the answer may be held back, because there is
    /// nothing to say yet.
    /// </summary>
    /// <param name="command">A read of a kind that this table has.</param>
    /// <param name="time">Cluster time of the last applied entry.</param>
    /// <param name="now">Cluster time by the leader's clock.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    /// <param name="outcome">Takes the outcome.</param>
    public virtual bool Read(
        scoped in Command command, ClusterTime time, ClusterTime now, KnownHash known, ByteBuffer outcome) =>
        throw NoSuchCommand(command.Kind);

    /// <summary>The log holds a command that this version does not apply.</summary>
    protected static InvariantException NoSuchCommand(CommandKind kind) =>
        new($"Invariant broken: a table carries out only its own commands; kind {(byte)kind} is none.");
}

/// <summary>
/// Takes the outcome of the command that is being applied: the one place where it is remembered under the command's
/// number, and encoded for the caller that waits for it. Used again for each command. Owned by the state; not
/// thread-safe.
/// </summary>
internal sealed class CommandAnswer(IOutcomeMemory memory)
{
    private ByteBuffer? _target;

    /// <summary>The outcome is to be remembered under the command's number.</summary>
    private bool _isNumbered;

    /// <summary>Somebody will see the outcome, now or when the command comes again.</summary>
    public bool IsWanted => _target is not null || _isNumbered;

    /// <summary>A command begins. Without a target (followers, restart) nothing is encoded.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public void Begin(ByteBuffer? target)
    {
        _target = target;
        _isNumbered = false;
    }

    /// <summary>The command has a number that was not carried out before.</summary>
    public void RememberNumber() => _isNumbered = true;

    /// <summary>The command counts as not carried out: its number may come again.</summary>
    public void ForgetNumber() => _isNumbered = false;

    /// <summary>The outcome is known. At most once per command.</summary>
    public void Give(scoped in Outcome outcome)
    {
        if (_isNumbered)
        {
            _isNumbered = false;
            memory.Remember(in outcome);
        }

        if (_target is not null)
        {
            outcome.Write(_target);
        }
    }
}

/// <summary>
/// Remembers the outcome of the numbered command that is being applied. Owned by the state; not thread-safe.
/// </summary>
internal interface IOutcomeMemory
{
    /// <summary>Keeps the outcome under the command's number.</summary>
    void Remember(scoped in Outcome outcome);
}
