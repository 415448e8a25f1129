using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Access;

/// <summary>
/// The one place where it is decided whether a caller's command may go on (docs/adr/0044-access.md). Every way in
/// passes it: streams and unary calls in the admission, transactions and scripts of several partitions before this node
/// coordinates them, watches when they begin and after each change of rights. Any thread.
/// </summary>
internal sealed class AccessGate(AccessState access)
{
    /// <summary>
    /// A node relies on its records while it had everything that was committed at most this long ago, in ms.
    /// </summary>
    public const int FreshMs = 800;

    /// <summary>The records about who may do what.</summary>
    public AccessState Access => access;

    /// <summary>
    /// What holds for a caller at this moment: for one frame, or one call. It must not be kept for longer.
    /// </summary>
    /// <param name="caller">Who asks; null: nobody has said so.</param>
    public AccessPass Look(Caller? caller)
    {
        if (caller is null || (ReferenceEquals(caller, Caller.Anybody) && access.IsRequired))
        {
            return access.IsRequired
                ? new AccessPass(OutcomeStatus.Unauthenticated, "The caller has not said who it is.") : default;
        }

        if (caller.IsTrusted)
        {
            return default;
        }

        if (caller.End is { } end)
        {
            return new AccessPass(OutcomeStatus.Unauthenticated, end);
        }

        return access.IsFresh()
            ? new AccessPass(caller.Rights, caller.Sessions)
            : new AccessPass(
                OutcomeStatus.Unavailable,
                "This node has not heard from the leader of the meta group for a second, so it does not know whether "
                    + "rights have changed; nothing was done. Try again, or another node.");
    }
}

/// <summary>What holds for a caller at one moment; the default: nothing is checked. A value.</summary>
internal readonly struct AccessPass
{
    private readonly Rights? _rights;
    private readonly UserSessions? _sessions;
    private readonly OutcomeStatus _status;
    private readonly string? _refusal;

    /// <summary>The caller has rights.</summary>
    public AccessPass(Rights rights, UserSessions sessions) => (_rights, _sessions) = (rights, sessions);

    /// <summary>Nothing may go on.</summary>
    public AccessPass(OutcomeStatus status, string refusal) => (_status, _refusal) = (status, refusal);

    /// <summary>Nothing is checked.</summary>
    public bool IsUnchecked => _rights is null && _refusal is null;

    /// <summary>What the caller may do; null: nothing is checked, or nothing may go on.</summary>
    public Rights? Rights => _rights;

    /// <summary>Why nothing may go on at all; null: the rights decide.</summary>
    public (OutcomeStatus Status, string Sentence)? Refusal =>
        _refusal is null ? null : (_status, _refusal);

    /// <summary>
    /// Why a command that has passed its check may not go on; null: it may, and its session is now the user's own.
    /// </summary>
    /// <param name="command">The command.</param>
    /// <param name="bytes">Its bytes, which the session is written into.</param>
    /// <param name="status">The status of the refusal.</param>
    public string? Admit(scoped in Command command, Span<byte> bytes, out OutcomeStatus status)
    {
        string? refusal = Refuse(in command, out status);
        if (refusal is null)
        {
            _sessions?.Bind(bytes);
        }

        return refusal;
    }

    /// <summary>
    /// As <see cref="Refuse"/>, of a command that a script sends: what it reads needs its own permission.
    /// </summary>
    public string? RefuseInScript(scoped in Command command, out OutcomeStatus status)
    {
        string? refusal = Refuse(in command, out status);
        if (refusal is not null || _rights is null || command.Kind == CommandKind.Transaction)
        {
            return refusal;
        }

        bool covers = command.Kind == CommandKind.KeyRange
            ? _rights.CoversRange(
                Permissions.Script,
                command.Durability,
                command.Key,
                command.ComparedValue,
                command.Has(CommandFlags.IfValue))
            : _rights.Covers(Permissions.Script, command.Durability, command.Key);
        status = covers ? default : OutcomeStatus.PermissionDenied;
        return covers ? null : "The permission script is missing on a name that the script reads.";
    }

    /// <summary>Why a command may not go on; null: it may.</summary>
    public string? Refuse(scoped in Command command, out OutcomeStatus status)
    {
        if (_rights is null)
        {
            status = _status;
            return _refusal;
        }

        string? refusal = CommandRights.Refusal(_rights, in command);
        status = refusal is null ? default : OutcomeStatus.PermissionDenied;
        return refusal;
    }
}

/// <summary>
/// Who makes the unary call that runs: it goes with the call through everything that the call awaits. Null: nobody has
/// said so. Stateless.
/// </summary>
internal static class CallerOfCall
{
    private static readonly AsyncLocal<Caller?> s_current = new();

    /// <summary>The caller.</summary>
    public static Caller? Current
    {
        get => s_current.Value;
        set => s_current.Value = value;
    }
}
