using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.Access;

/// <summary>
/// The one place where it is decided whether a caller's command may go on (docs/adr/0044-access.md). Every way in
/// passes it: streams and unary calls in the admission, transactions and scripts of several partitions before this node
/// coordinates them, watches when they begin and after each change of rights. Any thread.
/// </summary>
/// <param name="access">The records about who may do what.</param>
/// <param name="audit">Gets what is refused; null: nobody does.</param>
internal sealed class AccessGate(AccessState access, RefusalAudit? audit = null)
{
    /// <summary>
    /// A node relies on its records while it had everything that was committed at most this long ago, in ms.
    /// </summary>
    public const int FreshMs = 800;

    /// <summary>The records about who may do what.</summary>
    public AccessState Access => access;

    /// <summary>Gets what is refused; null: nobody does.</summary>
    public RefusalAudit? Audit => audit;

    /// <summary>
    /// What holds for a caller at this moment: for one frame, or one call. It must not be kept for longer.
    /// </summary>
    /// <param name="caller">Who asks; null: nobody has said so.</param>
    public AccessPass Look(Caller? caller) => Decide(caller) with { Audit = audit, Caller = caller };

    private AccessPass Decide(Caller? caller)
    {
        if (caller is null || (ReferenceEquals(caller, Caller.Anybody) && access.IsRequired))
        {
            return access.IsRequired
                ? new AccessPass(OutcomeStatus.Unauthenticated, "The caller has not said who it is.") : default;
        }

        if (caller.IsTrusted)
        {
            return ReferenceEquals(caller, Caller.Node) ? AccessPass.OfNode : default;
        }

        if (!access.IsFresh())
        {
            // What the records say of the caller may be old too: whether it is a user at all.
            return new AccessPass(OutcomeStatus.Unavailable, AccessState.StaleSentence);
        }

        return caller.End is { } end
            ? new AccessPass(OutcomeStatus.Unauthenticated, end)
            : new AccessPass(caller);
    }
}

/// <summary>What holds for a caller at one moment; the default: nothing is checked. A value.</summary>
internal readonly struct AccessPass
{
    private readonly Rights? _rights;
    private readonly UserSessions? _sessions;
    private readonly UserAllowance? _allowance;
    private readonly OutcomeStatus _status;
    private readonly string? _refusal;
    private readonly bool _isNode;

    /// <summary>The caller has rights and an allowance.</summary>
    public AccessPass(Caller caller) =>
        (_rights, _sessions, _allowance) = (caller.Rights, caller.Sessions, caller.Allowance);

    /// <summary>Nothing may go on.</summary>
    public AccessPass(OutcomeStatus status, string refusal) => (_status, _refusal) = (status, refusal);

    private AccessPass(bool isNode) => _isNode = isNode;

    /// <summary>Another node has checked the command, and has said whose it is.</summary>
    public static AccessPass OfNode { get; } = new(isNode: true);

    /// <summary>Gets what is refused; null: nobody does.</summary>
    public RefusalAudit? Audit { get; init; }

    /// <summary>Whose commands they are; null: nobody has said so.</summary>
    public Caller? Caller { get; init; }

    /// <summary>Nothing is checked.</summary>
    public bool IsUnchecked => _rights is null && _refusal is null;

    /// <summary>What the caller may do; null: nothing is checked, or nothing may go on.</summary>
    public Rights? Rights => _rights;

    /// <summary>Whose account the caller's writes are charged to; 0 for nobody's.</summary>
    public ushort Account => _allowance?.Account ?? 0;

    /// <summary>Why nothing may go on at all; null: the rights decide.</summary>
    public (OutcomeStatus Status, string Sentence)? Refusal =>
        _refusal is null ? null : (_status, _refusal);

    /// <summary>
    /// Why a command that has passed its check may not go on; null: it may, and its session is now the user's own, as
    /// its account is. It counts as the user's operation.
    /// </summary>
    /// <param name="command">The command.</param>
    /// <param name="bytes">Its bytes, which session and account are written into.</param>
    /// <param name="status">The status of the refusal.</param>
    public string? Admit(scoped in Command command, Span<byte> bytes, out OutcomeStatus status)
    {
        string? refusal = Refuse(in command, out status);
        refusal ??= _allowance?.RateRefusal(in command, out status);
        if (refusal is null)
        {
            _sessions?.Bind(bytes);
            if (!_isNode)
            {
                Command.SetAccount(bytes, command.IsRead ? (ushort)0 : Account);
            }
        }

        return refusal;
    }

    /// <summary>
    /// Nothing has to be done about a command: nothing is checked, and it says nothing that only nodes may say.
    /// </summary>
    public bool Passes(scoped in Command command) => IsUnchecked && command.Account == 0;

    /// <summary>
    /// As <see cref="Refuse"/>, of a command that a script sends: what it reads needs its own permission.
    /// </summary>
    public string? RefuseInScript(scoped in Command command, out OutcomeStatus status)
    {
        string? refusal = Decide(in command, out status);
        if (refusal is not null || _rights is null || command.Kind == CommandKind.Transaction)
        {
            return Audited(in command, status, refusal);
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
        return covers
            ? null
            : Audited(in command, status, "The permission script is missing on a name that the script reads.");
    }

    /// <summary>
    /// Writes the outcome of a command that may not go on. That of a script says whether it may be run as a
    /// transaction.
    /// </summary>
    public static void WriteRefusal(ByteBuffer target, OutcomeStatus status, string sentence) => Outcome.WriteError(
        target, status, sentence, status == OutcomeStatus.ScriptFailed ? ScriptEnds.NotAllowedHere : 0);

    /// <summary>Why a command may not go on; null: it may.</summary>
    public string? Refuse(scoped in Command command, out OutcomeStatus status)
    {
        string? refusal = Decide(in command, out status);
        return Audited(in command, status, refusal);
    }

    private string? Decide(scoped in Command command, out OutcomeStatus status)
    {
        if (_rights is null)
        {
            status = _status;
            return _refusal;
        }

        string? refusal = CommandRights.Refusal(_rights, in command);
        status = refusal is null ? default
            : CommandRights.MayBeTransaction(_rights, in command) ? OutcomeStatus.ScriptFailed
            : OutcomeStatus.PermissionDenied;
        return refusal ?? _allowance?.StorageRefusal(in command, out status);
    }

    private string? Audited(scoped in Command command, OutcomeStatus status, string? refusal)
    {
        if (refusal is not null)
        {
            Audit?.Refused(Caller, _rights, in command, status, refusal);
        }

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
