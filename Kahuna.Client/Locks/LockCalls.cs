using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Commands;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Locks;

/// <summary>The operations on locks as the wire has them, one method each, and what all that is about locks in a client shares. Part of a <see cref="KahunaClient"/>; any thread.</summary>
internal sealed class LockCalls(ClusterConnection connection, ConnectionPorts ports, int maxInFlight, ILogger logger)
{
    /// <summary>Questions of one client that may wait at the leader at a time.</summary>
    private const int AwaitsMax = 4096;

    private readonly Loops _loops = new(ports.Context);

    public ConnectionClock Clock { get; } = new(ports.Time);

    public TimeProvider Time => ports.Time;

    public OwnerNames Owners { get; } = new(ports.NewSessionId);

    /// <summary>The leases whose owners the caller has named.</summary>
    public NamedLeases Named { get; } = new();

    /// <summary>What keeps leases may have threads of its own.</summary>
    public bool HasThreads => ports.HasThreads;

    /// <summary>Tells holders of a loss; null: the pool does it, or a simulator's run.</summary>
    public LossNotices? Losses { get; } = ports.HasThreads ? new LossNotices() : null;

    public ILogger Logger => logger;

    /// <summary>Bounds the questions that wait at the leader, so that at least half of a stream is left for everything else.</summary>
    public AwaitGate Gate { get; } = new(Math.Clamp(maxInFlight / 2, 1, AwaitsMax), takesAll: maxInFlight < 2, ports.Time, ports.Context is not null);

    /// <summary>Code after an await goes on in the context that the ports name.</summary>
    public bool CapturesContext => connection.CapturesContext;

    /// <summary>How long an operation may take altogether, in ticks of the clock.</summary>
    public long RequestTimeout => connection.RequestTimeout;

    /// <summary>Goes on with something when the caller does not.</summary>
    public Task Start(Func<Task> work) => _loops.Start(work);

    /// <summary>Asks for the lock.</summary>
    /// <param name="claim">Who asks for which lock.</param>
    /// <param name="waitMs">How long the claim may wait in the queue; null: not at all.</param>
    /// <param name="patience">When the answer has to be here; null: by the request timeout.</param>
    public ValueTask<LockReply> AcquireAsync(in LockClaim claim, long? waitMs, TimeSpan? patience)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockAcquire, claim.Resource, claim.Durability);
        operation.SetValue(claim.Form);
        operation.AddTtl(claim.Lease);
        if (waitMs is { } ms)
        {
            operation.AddNumber(ms);
        }

        operation.Patience = patience;
        return connection.Run(operation, CancellationToken.None);
    }

    /// <summary>Whether the claim was granted; the leader may hold the answer back, and it has to be here within so long after that.</summary>
    public ValueTask<LockReply> AwaitAsync(in LockClaim claim, long token, long holdMs, TimeSpan patience, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockAwait, claim.Resource, claim.Durability);
        operation.SetValue(claim.Owner);
        operation.AddComparison(null, token);
        operation.AddNumber(holdMs);
        operation.Patience = patience;
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> ExtendAsync(in LockClaim claim, long token, TimeSpan lease, CancellationToken ct) =>
        ExtendAsync(claim.Resource, claim.Durability, (claim.Owner, token), lease, ct);

    /// <summary>An extension whose answer has to be here within so long.</summary>
    public ValueTask<LockReply> ExtendSoonAsync(in LockClaim claim, long token, TimeSpan patience, CancellationToken ct)
    {
        Operation<LockReply> operation = Extension(claim.Resource, claim.Durability, (claim.Owner, token), claim.Lease);
        operation.Patience = patience;
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> ExtendAsync(string resource, CommandDurability durability, (ReadOnlyMemory<byte> Owner, long Token) holder, TimeSpan lease, CancellationToken ct) =>
        connection.Run(Extension(resource, durability, holder, lease), ct);

    /// <summary>An extension that is given up early enough for another one, which may find another way. What follows its answer must not block: it runs on the stream's reader.</summary>
    public ValueTask<LockReply> RenewAsync(in LockClaim claim, long token, TimeSpan lease)
    {
        Operation<LockReply> operation = Extension(claim.Resource, claim.Durability, (claim.Owner, token), lease);
        operation.Patience = claim.Lease / 3;
        operation.EndsInline = true;
        return connection.Run(operation, CancellationToken.None);
    }

    /// <summary>Gives a claim up: all of it, or only its place in the queue, so that a lock that it has got stays.</summary>
    public ValueTask<LockReply> ReleaseAsync(in LockClaim claim, long token, bool onlyPlace, CancellationToken ct) =>
        ReleaseAsync(claim.Resource, claim.Durability, (claim.Owner, token), onlyPlace, ct);

    public ValueTask<LockReply> ReleaseAsync(string resource, CommandDurability durability, (ReadOnlyMemory<byte> Owner, long Token) holder, bool onlyPlace, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockRelease, resource, durability);
        operation.AddFlag(CommandFlags.IfAbsent, onlyPlace);
        operation.SetValue(holder.Owner);
        operation.AddComparison(null, holder.Token);
        return connection.Run(operation, ct);
    }

    public ValueTask<LockReply> GetAsync(string resource, CommandDurability durability, CancellationToken ct) => connection.Run(Begin(CommandKind.LockGet, resource, durability), ct);

    /// <summary>Who holds the lock, as soon as it is another than the one with the known token, or the leader has held the answer back for long enough.</summary>
    public ValueTask<LockReply> ObserveAsync(string resource, CommandDurability durability, long knownToken, long holdMs, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockObserve, resource, durability);
        operation.AddComparison(null, knownToken);
        operation.AddNumber(holdMs);
        return connection.Run(operation, ct);
    }

    /// <summary>A page of the locks of one partition.</summary>
    public ValueTask<LockReply> ListAsync(string prefix, CommandDurability durability, (int Partition, long Cursor) place, CancellationToken ct)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockList, prefix, durability);
        operation.AddNumber(place.Partition);
        operation.AddReadRevision(place.Cursor);
        operation.FixedPartition = place.Partition;
        return connection.Run(operation, ct);
    }

    /// <summary>How many partitions there are.</summary>
    public ValueTask<int> PartitionsAsync(CancellationToken ct) => connection.PartitionsAsync(ct);

    private static Operation<LockReply> Extension(string resource, CommandDurability durability, (ReadOnlyMemory<byte> Owner, long Token) holder, TimeSpan lease)
    {
        Operation<LockReply> operation = Begin(CommandKind.LockExtend, resource, durability);
        operation.SetValue(holder.Owner);
        operation.AddComparison(null, holder.Token);
        operation.AddTtl(lease);
        return operation;
    }

    private static Operation<LockReply> Begin(CommandKind kind, string resource, CommandDurability durability)
    {
        Operation<LockReply> operation = Operation<LockReply>.Rent();
        operation.Begin(kind, durability, resource);
        return operation;
    }
}
