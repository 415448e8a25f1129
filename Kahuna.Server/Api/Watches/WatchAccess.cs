using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// What one caller may watch: asked when a watch begins, and for all of them after each change of rights. Owned by one
/// stream; not thread-safe.
/// </summary>
/// <param name="gate">Decides.</param>
/// <param name="caller">Whose stream it is; null: nobody has said so.</param>
internal sealed class WatchAccess(AccessGate gate, Caller? caller)
{
    private const Permissions Needed = Permissions.Watch | Permissions.Read;

    private const string Missing =
        "The watch needs the permissions read and watch on all names that it is for; one is missing.";

    private Rights? _rights;
    private bool _isUnchecked;

    /// <summary>The records about who may do what.</summary>
    public AccessState State => gate.Access;

    /// <summary>Watches have to be looked at again: the caller may do less, or more, than before.</summary>
    public bool HasChanged { get; private set; }

    /// <summary>
    /// Looks at what holds now. False: nothing may be told at the moment, because the node does not know whether rights
    /// have changed.
    /// </summary>
    /// <exception cref="RpcException">The caller's identity no longer holds: the stream ends.</exception>
    public bool Look()
    {
        AccessPass pass = gate.Look(caller);
        if (pass.Refusal is { } refusal)
        {
            return refusal.Status == OutcomeStatus.Unavailable
                ? false : throw new RpcException(new Status(StatusCode.Unauthenticated, refusal.Sentence));
        }

        HasChanged = !ReferenceEquals(_rights, pass.Rights);
        (_rights, _isUnchecked) = (pass.Rights, pass.IsUnchecked);
        return true;
    }

    /// <summary>
    /// Why these names may not be watched, as of the last look; null: they may. A refusal is audited.
    /// </summary>
    public string? Refuse(Durability durability, WatchScope scope, ReadOnlySpan<byte> name)
    {
        if (_isUnchecked || (_rights is { } rights && Covers(rights, durability, scope, name)))
        {
            return null;
        }

        gate.Audit?.RefusedWatch(caller, name, Missing);
        return Missing;
    }

    private static bool Covers(Rights rights, Durability durability, WatchScope scope, ReadOnlySpan<byte> name) =>
        scope switch
        {
            WatchScope.Key => rights.Covers(Needed, durability, name),
            WatchScope.Prefix => rights.CoversPrefix(Needed, durability, name),
            WatchScope.Bucket => rights.CoversBucket(Needed, durability, name),
            _ => false,
        };
}
