using Kahuna.Client.Connection;
using Kahuna.Wire.Commands;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Locks;

/// <summary>
/// The operations on locks, one method each, and the services that everything about locks in a client shares. Part of a
/// <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class LockOperations(
    ClusterConnection connection, ConnectionPorts ports, int maxInFlight, ILogger logger)
{
    /// <summary>The most long polls of one client that may wait at the leader.</summary>
    private const int AwaitsMax = 4096;

    private readonly DetachedLoops _loops = new(ports.Context);

    public ConnectionClock Clock { get; } = new(ports.Time);

    public TimeProvider Time => ports.Time;

    public OwnerNames Owners { get; } = new(ports.NewSessionId);

    /// <summary>The leases of owners that the caller named.</summary>
    public NamedLeases Named { get; } = new();

    /// <summary>True when lease keeping may use threads of its own.</summary>
    public bool HasThreads => ports.HasThreads;

    /// <summary>Notifies holders of a loss; null when the pool or a simulated run does.</summary>
    public LossNotices? Losses { get; } = ports.HasThreads ? new LossNotices() : null;

    public ILogger Logger => logger;

    /// <summary>
    /// Limits the long polls at the leader, so that at least half of a stream is left for other operations.
    /// </summary>
    public WaitLimiter Waits { get; } = new(
        Math.Clamp(maxInFlight / 2, 1, AwaitsMax), takesAll: maxInFlight < 2, ports.Time, ports.Context is not null);

    /// <summary>True when continuations run in the context that the ports name.</summary>
    public bool CapturesContext => connection.CapturesContext;

    /// <summary>The request timeout in ticks of the clock.</summary>
    public long RequestTimeout => connection.RequestTimeout;

    /// <summary>Starts work that outlives the caller.</summary>
    public Task Start(Func<Task> work) => _loops.Start(work);

    /// <summary>Claims the lock.</summary>
    /// <param name="claim">Owner and lock.</param>
    /// <param name="waitMs">How long the claim may wait in the queue; null not to wait.</param>
    /// <param name="patience">The time limit for the answer; null for the request timeout.</param>
    public ValueTask<LockReply> AcquireAsync(in OwnerClaim claim, long? waitMs, TimeSpan? patience)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockAcquire, claim.Resource, claim.Durability);
        operation.Request.SetValue(claim.Body);
        operation.Request.AddTtl(claim.Lease);
        if (waitMs is { } ms)
        {
            operation.Request.SetWait(ms);
        }

        operation.Request.Patience = patience;
        return connection.Run(operation, CancellationToken.None);
    }

    /// <summary>
    /// Polls whether the claim was granted. The leader may delay the answer by the hold, which must arrive within
    /// <paramref name="patience"/> after that.
    /// </summary>
    public ValueTask<LockReply> AwaitAsync(
        in OwnerClaim claim, FencingToken token, long holdMs, TimeSpan patience, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockAwait, claim.Resource, claim.Durability);
        operation.Request.SetValue(claim.Owner);
        operation.Request.SetToken(token);
        operation.Request.SetHold(holdMs);
        operation.Request.Patience = patience;
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> ExtendAsync(
        in OwnerClaim claim, FencingToken token, TimeSpan lease, CancellationToken ct) =>
        ExtendAsync(claim.Resource, claim.Durability, (claim.Owner, token), lease, ct);

    /// <summary>An extension whose answer must arrive within <paramref name="patience"/>.</summary>
    public ValueTask<LockReply> ExtendSoonAsync(
        in OwnerClaim claim, FencingToken token, TimeSpan patience, CancellationToken ct)
    {
        Operation<LockReply> operation = Extension(claim.Resource, claim.Durability, (claim.Owner, token), claim.Lease);
        operation.Request.Patience = patience;
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> ExtendAsync(
        string resource,
        Durability durability,
        (ReadOnlyMemory<byte> Owner, FencingToken Token) holder,
        TimeSpan lease,
        CancellationToken ct) =>
        connection.Run(Extension(resource, durability, holder, lease), ct);

    /// <summary>
    /// An extension that gives up early enough for another one over another route. The code after its answer runs on
    /// the stream's reader and must not block.
    /// </summary>
    public ValueTask<LockReply> RenewAsync(in OwnerClaim claim, FencingToken token, TimeSpan lease)
    {
        Operation<LockReply> operation = Extension(claim.Resource, claim.Durability, (claim.Owner, token), lease);
        operation.Request.Patience = claim.Lease / 3;
        operation.Request.EndsInline = true;
        return connection.Run(operation, CancellationToken.None);
    }

    /// <summary>Abandons a claim: all of it, or only its place in the queue, so that a granted lock stays.</summary>
    public ValueTask<LockReply> ReleaseAsync(
        in OwnerClaim claim, FencingToken token, bool onlyPlace, CancellationToken ct) =>
        ReleaseAsync(claim.Resource, claim.Durability, (claim.Owner, token), onlyPlace, ct);

    public ValueTask<LockReply> ReleaseAsync(
        string resource,
        Durability durability,
        (ReadOnlyMemory<byte> Owner, FencingToken Token) holder,
        bool onlyPlace,
        CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockRelease, resource, durability);
        operation.Request.SetOnlyPlace(onlyPlace);
        operation.Request.SetValue(holder.Owner);
        operation.Request.SetToken(holder.Token);
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> GetAsync(string resource, Durability durability, CancellationToken ct) =>
        connection.Run(Begin(CommandKind.LockGet, resource, durability), ct);

    /// <summary>
    /// Observes the holder. Answers once the first holder's token differs from the known one, or when the hold ends.
    /// </summary>
    public ValueTask<LockReply> ObserveAsync(
        string resource, Durability durability, FencingToken knownToken, long holdMs, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockObserve, resource, durability);
        operation.Request.SetToken(knownToken);
        operation.Request.SetHold(holdMs);
        return connection.Run(operation, ct);
    }

    /// <summary>Reads a page of the locks of one partition.</summary>
    public ValueTask<LockReply> ListAsync(
        string prefix, Durability durability, (int Partition, long Cursor) place, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockList, prefix, durability);
        operation.Request.SetPage(place.Partition, place.Cursor);
        return connection.Run(operation, ct);
    }

    /// <summary>The number of partitions.</summary>
    public ValueTask<int> PartitionsAsync(CancellationToken ct) => connection.PartitionsAsync(ct);

    private static Operation<LockReply> Extension(
        string resource,
        Durability durability,
        (ReadOnlyMemory<byte> Owner, FencingToken Token) holder,
        TimeSpan lease)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockExtend, resource, durability);
        operation.Request.SetValue(holder.Owner);
        operation.Request.SetToken(holder.Token);
        operation.Request.AddTtl(lease);
        return operation;
    }

    private static Operation<LockReply> Begin(CommandKind kind, string resource, Durability durability)
    {
        Operation<LockReply> operation = Operation<LockReply>.Rent();
        operation.Request.Begin(kind, durability, resource);
        return operation;
    }
}
