using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Api;

/// <summary>The lock fields of a unary request, and the commands built from them. Immutable.</summary>
internal sealed class LockCommandBuilder
{
    private readonly byte[] _resource;
    private readonly Durability _durability;
    private readonly byte[] _owner;
    private readonly byte[] _form;

    private LockCommandBuilder(string resource, Protos.Durability durability, string owner, byte[] form)
    {
        _resource = CommandText.Encode("resource", resource);
        _durability = DurabilityField.Read(durability);
        _owner = Encoding.UTF8.GetBytes(owner);
        _form = form;
    }

    /// <summary>The requested lease.</summary>
    public long LeaseMs { get; private init; }

    /// <summary>The longest wait; null: do not wait.</summary>
    public long? WaitMs { get; private init; }

    /// <summary>For an existing claim of an owner. The command's own check applies the limits.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: a field does not fit into a command.</exception>
    public static LockCommandBuilder Of(
        string resource, Protos.Durability durability, string owner, long leaseMs = 0) =>
        new(resource, durability, owner, []) { LeaseMs = leaseMs };

    /// <summary>For a new claim. The command's own check applies the limits.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: a field does not fit into a command.</exception>
    public static LockCommandBuilder Of(AcquireLockRequest request)
    {
        if (request.Mode is < 0 or > (Protos.LockMode)byte.MaxValue)
        {
            throw Invalid($"mode is {(int)request.Mode}; it must be 1 (exclusive), 2 (shared) or 3 (permit).");
        }

        if (request.Permits is < 0 or > ushort.MaxValue)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"permits is {request.Permits:N0}; it must be 1 to {Limits.PermitsMax:N0} for a "
                    + $"semaphore, and 0 otherwise."));
        }

        byte[] owner = Encoding.UTF8.GetBytes(request.Owner);
        if (owner.Length > Limits.OwnerBytesMax)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"owner is {owner.Length:N0} bytes; the limit is {Limits.OwnerBytesMax}."));
        }

        LockBody form =
            new() { Mode = (LockMode)request.Mode, Permits = request.Permits, Owner = owner, Note = request.Note.Span };
        byte[] bytes = new byte[form.EncodedBytes];
        form.Write(bytes);
        return new LockCommandBuilder(request.Resource, request.Durability, request.Owner, bytes)
        {
            LeaseMs = request.LeaseMs,
            WaitMs = request.HasWaitMs ? request.WaitMs : null,
        };
    }

    /// <summary>Requests the lock and waits for at most this time; null: does not wait.</summary>
    public Command Acquire(long? waitMs) =>
        WithDurability(LockAcquire.ToCommand(_resource, _form, LeaseMs, waitMs));

    /// <summary>Renews the lease.</summary>
    public Command Extend(long token) =>
        WithDurability(LockExtend.ToCommand(_resource, _owner, new FencingToken(token), LeaseMs));

    /// <summary>
    /// Releases the lock or its place in the queue; with <paramref name="onlyPlace"/> only the place.
    /// </summary>
    public Command Release(long token, bool onlyPlace) =>
        WithDurability(LockRelease.ToCommand(_resource, _owner, new FencingToken(token), onlyPlace));

    /// <summary>Polls the claim.</summary>
    public Command Await(long token, long holdMs) =>
        WithDurability(LockAwait.ToCommand(_resource, _owner, new FencingToken(token), holdMs));

    /// <summary>Reads the holders of the lock.</summary>
    public Command Get() => WithDurability(new Command { Kind = CommandKind.LockGet, Key = _resource });

    /// <summary>Waits until the first holder differs from the known one, and reads the holders.</summary>
    public Command Observe(long knownToken, long holdMs) =>
        WithDurability(LockObserve.ToCommand(_resource, new FencingToken(knownToken), holdMs));

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);

    private Command WithDurability(Command command)
    {
        command.Durability = _durability;
        return command;
    }
}
