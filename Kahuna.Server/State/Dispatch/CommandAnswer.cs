using System.Runtime.CompilerServices;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Dispatch;

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
