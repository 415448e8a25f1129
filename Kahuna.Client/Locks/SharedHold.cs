
namespace Kahuna.Client.Locks;

/// <summary>
/// A lock that the caller's flow of control has claimed in shared mode. Claiming it exclusively meanwhile would
/// deadlock: there is no upgrade, because two upgrades would wait for each other. The execution context carries it from
/// the claiming method to those that it calls. One for each shared claim; any thread.
/// </summary>
internal sealed class SharedHold
{
    private static readonly AsyncLocal<SharedHold?> s_holds = new();

    private readonly SharedHold? _before;
    private readonly LockOperations _client;
    private readonly string _resource;
    private readonly Durability _durability;
    private volatile HeldLease? _lease;

    private SharedHold(SharedHold? before, LockOperations client, in LockRequest request)
    {
        _before = before;
        _client = client;
        _resource = request.Resource;
        _durability = request.Durability;
    }

    private bool IsHeld => _lease is { } lease && lease.Remaining > TimeSpan.Zero;

    /// <summary>Records that the caller's flow claims a lock in shared mode.</summary>
    public static SharedHold Begin(LockOperations client, in LockRequest request)
    {
        // Ended holds are dropped, so that a flow that never ends keeps only those that it has.
        SharedHold? before = s_holds.Value;
        while (before is { IsHeld: false })
        {
            before = before._before;
        }

        SharedHold hold = new(before, client, in request);
        s_holds.Value = hold;
        return hold;
    }

    /// <summary>The token under which the caller's flow holds a lock in shared mode; null when it does not.</summary>
    public static FencingToken? TokenOf(LockOperations client, in LockRequest request)
    {
        for (SharedHold? hold = s_holds.Value; hold is not null; hold = hold._before)
        {
            if (hold._client == client
                && hold._resource == request.Resource
                && hold._durability == request.Durability
                && hold.IsHeld)
            {
                return hold._lease!.Token;
            }
        }

        return null;
    }

    /// <summary>Records the grant.</summary>
    public void Grant(HeldLease lease) => _lease = lease;
}
