using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Locks;

/// <summary>
/// A lock that the caller's flow of control has asked for in shared mode. Asking for the same lock exclusively while
/// that is held would wait for itself: there is no upgrade, as two that upgraded would wait for each other. Known to
/// the method that asked and to those that it calls, as the execution context flows. One for each shared claim; any
/// thread.
/// </summary>
internal sealed class SharedHold
{
    private static readonly AsyncLocal<SharedHold?> s_holds = new();

    private readonly SharedHold? _before;
    private readonly LockCalls _client;
    private readonly string _resource;
    private readonly CommandDurability _durability;
    private volatile HeldLease? _lease;

    private SharedHold(SharedHold? before, LockCalls client, in LockWish wish)
    {
        _before = before;
        _client = client;
        _resource = wish.Resource;
        _durability = wish.Durability;
    }

    private bool IsHeld => _lease is { } lease && lease.Remaining > TimeSpan.Zero;

    /// <summary>The caller's flow asks for a lock in shared mode.</summary>
    public static SharedHold Begin(LockCalls client, in LockWish wish)
    {
        // What is over is forgotten, so that a flow that goes on for ever keeps what it holds and no more.
        SharedHold? before = s_holds.Value;
        while (before is { IsHeld: false })
        {
            before = before._before;
        }

        SharedHold hold = new(before, client, in wish);
        s_holds.Value = hold;
        return hold;
    }

    /// <summary>The token under which the caller's flow holds a lock in shared mode; null when it does not.</summary>
    public static long? TokenOf(LockCalls client, in LockWish wish)
    {
        for (SharedHold? hold = s_holds.Value; hold is not null; hold = hold._before)
        {
            if (hold._client == client && hold._resource == wish.Resource && hold._durability == wish.Durability && hold.IsHeld)
            {
                return hold._lease!.Token;
            }
        }

        return null;
    }

    /// <summary>It was granted.</summary>
    public void Grant(HeldLease lease) => _lease = lease;
}
