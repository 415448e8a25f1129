using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Api.Protos;
using LockMode = Kahuna.Client.Wire.Commands.LockMode;

namespace Kahuna.Server.Api;

/// <summary>What a unary call says of a claim for a lock, and the commands about it. Immutable.</summary>
internal sealed class LockClaim
{
    private readonly byte[] _resource;
    private readonly CommandDurability _durability;
    private readonly byte[] _owner;
    private readonly byte[] _form;

    private LockClaim(string resource, Durability durability, string owner, byte[] form)
    {
        _resource = CommandText.Encode("resource", resource);
        _durability = DurabilityField.Read(durability);
        _owner = Encoding.UTF8.GetBytes(owner);
        _form = form;
    }

    /// <summary>For how long the lock is wanted.</summary>
    public long LeaseMs { get; private init; }

    /// <summary>For how long to wait for it; null: not at all.</summary>
    public long? WaitMs { get; private init; }

    /// <summary>The claim that an owner has or has not. What is outside of its limits is refused with the command.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: a command cannot say it.</exception>
    public static LockClaim Of(string resource, Durability durability, string owner, long leaseMs = 0) => new(resource, durability, owner, []) { LeaseMs = leaseMs };

    /// <summary>The claim that somebody wants to make. What is outside of its limits is refused with the command.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: a command cannot say it.</exception>
    public static LockClaim Of(AcquireLockRequest request)
    {
        if (request.Mode is < 0 or > (Protos.LockMode)byte.MaxValue)
        {
            throw Invalid($"mode is {(int)request.Mode}; it must be 1 (exclusive), 2 (shared) or 3 (permit).");
        }

        if (request.Permits is < 0 or > ushort.MaxValue)
        {
            throw Invalid(string.Create(CultureInfo.InvariantCulture, $"permits is {request.Permits:N0}; it must be 1 to {Limits.PermitsMax:N0} for a semaphore, and 0 else."));
        }

        byte[] owner = Encoding.UTF8.GetBytes(request.Owner);
        if (owner.Length > Limits.OwnerBytesMax)
        {
            throw Invalid(string.Create(CultureInfo.InvariantCulture, $"owner is {owner.Length:N0} bytes; the limit is {Limits.OwnerBytesMax}."));
        }

        LockForm form = new() { Mode = (LockMode)request.Mode, Permits = request.Permits, Owner = owner, Note = request.Note.Span };
        byte[] bytes = new byte[form.EncodedBytes];
        form.Write(bytes);
        return new LockClaim(request.Resource, request.Durability, request.Owner, bytes) { LeaseMs = request.LeaseMs, WaitMs = request.HasWaitMs ? request.WaitMs : null };
    }

    /// <summary>Asks for the lock, and waits for so many ms; null: not at all.</summary>
    public Command Acquire(long? waitMs)
    {
        Command command = Of(CommandKind.LockAcquire, CommandFlags.Ttl | (waitMs is null ? 0 : CommandFlags.Number), _form);
        command.TtlMs = LeaseMs;
        command.Number = waitMs ?? 0;
        return command;
    }

    /// <summary>Renews the lease.</summary>
    public Command Extend(long token)
    {
        Command command = Of(CommandKind.LockExtend, CommandFlags.Ttl | CommandFlags.IfRevision, _owner);
        command.ComparedRevision = token;
        command.TtlMs = LeaseMs;
        return command;
    }

    /// <summary>Gives the lock back, or its place in the queue, or nothing but that.</summary>
    public Command Release(long token, bool onlyPlace)
    {
        Command command = Of(CommandKind.LockRelease, CommandFlags.IfRevision | (onlyPlace ? CommandFlags.IfAbsent : 0), _owner);
        command.ComparedRevision = token;
        return command;
    }

    /// <summary>How the claim stands.</summary>
    public Command Await(long token, long holdMs)
    {
        Command command = Of(CommandKind.LockAwait, CommandFlags.IfRevision | CommandFlags.Number, _owner);
        command.ComparedRevision = token;
        command.Number = holdMs;
        return command;
    }

    /// <summary>Who has the lock.</summary>
    public Command Get() => Of(CommandKind.LockGet, CommandFlags.None, default);

    /// <summary>Who has the lock, when it is another than is known.</summary>
    public Command Observe(long knownToken, long holdMs)
    {
        Command command = Of(CommandKind.LockObserve, CommandFlags.IfRevision | CommandFlags.Number, default);
        command.ComparedRevision = knownToken;
        command.Number = holdMs;
        return command;
    }

    private static RpcException Invalid(string sentence) => OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);

    private Command Of(CommandKind kind, CommandFlags flags, ReadOnlySpan<byte> value) => new()
    {
        Kind = kind,
        Durability = _durability,
        Flags = flags,
        Key = _resource,
        Value = value,
    };
}
