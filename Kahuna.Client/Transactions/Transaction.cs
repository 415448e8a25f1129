using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;

namespace Kahuna.Client.Transactions;

/// <summary>
/// An interactive, optimistic transaction. Obtained from <see cref="TransactionClient.BeginAsync"/>; one call at a
/// time.
/// <para>
/// Reads go to the cluster and are remembered; a key that is read again shows the same. Writes stay in the client, and
/// the transaction's own reads see them. The commit checks at one moment that nothing that was read has changed, and
/// writes everything, or nothing. So committed transactions are strictly serializable. Before the commit, reads of
/// different keys may be of different moments; <see cref="GetManyAsync"/> reads of one.
/// </para>
/// <para>
/// Its keys may lie in any partitions, and be of both durabilities (<see cref="WithDurability"/>). Keys of one
/// durability and one bucket, which is the part of a name before the last <c>/</c>, are committed in one round trip;
/// other commits take about two more. It takes at most 1,000 keys, and 4 MiB of what it writes. Nothing on the servers
/// waits for it: abandoning it costs nothing, and disposing it rolls it back.
/// </para>
/// </summary>
public sealed class Transaction : IAsyncDisposable
{
    private readonly TransactionCoordinator _coordinator;
    private readonly ClusterConnection _connection;
    private readonly KeyValueClient _keys;
    private readonly TransactionOptions _options;
    private readonly Durability _durability;
    private readonly TransactionBook _book;

    internal Transaction(
        TransactionCoordinator coordinator, KeyValueClient keys, Durability durability, TransactionOptions options)
    {
        _coordinator = coordinator;
        _connection = coordinator.Connection;
        _keys = keys;
        _options = options;
        _durability = options.Durability ?? durability;
        _book = new TransactionBook(_connection.Time, options.Timeout);
    }

    private Transaction(Transaction other, Durability durability)
    {
        _coordinator = other._coordinator;
        _connection = other._connection;
        _keys = other._keys;
        _options = other._options;
        _durability = durability;
        _book = other._book;
    }

    /// <summary>
    /// The same transaction for keys of another durability, which is part of their names. Both are one: what is read
    /// and written through either is committed, or rolled back, together, by either.
    /// </summary>
    public Transaction WithDurability(Durability durability) => new(this, durability);

    /// <summary>Reads a key.</summary>
    /// <param name="key">The key.</param>
    /// <param name="ct">Ends the wait; the transaction goes on.</param>
    /// <returns>
    /// The value, or what this transaction wrote. Of a key that it wrote, the revision is 0 until the commit.
    /// </returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionConflict"/>: the key has changed since this transaction looked at it.
    /// <see cref="KahunaErrorCode.TransactionEnded"/>: it is over. Otherwise the key could not be read; the transaction
    /// goes on.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<GetResult> GetAsync(string key, CancellationToken ct = default)
    {
        RequireOpen();
        TransactionKey item = Of(key);
        if (item.NeedsValue)
        {
            GetResult read = await _keys.GetAsync(key, new ReadOptions { Durability = _durability }, ct)
                .ConfigureAwait(_connection.CapturesContext);
            RequireOpen();
            item.Read(read.Found, read.Revision, read.Value, read.RemainingTtl);
        }

        return item.Shown;
    }

    /// <summary>Reads keys at one moment.</summary>
    /// <param name="keys">The keys, at most 1,000, each once.</param>
    /// <param name="ct">Ends the wait; the transaction goes on.</param>
    /// <returns>One result per key, in their order.</returns>
    /// <inheritdoc cref="GetAsync"/>
    public async ValueTask<IReadOnlyList<GetResult>> GetManyAsync(
        IEnumerable<string> keys, CancellationToken ct = default)
    {
        RequireOpen();
        ArgumentNullException.ThrowIfNull(keys);
        TransactionKey[] items = [.. keys.Take(Limits.TransactionItemsMax + 1).Select(Of)];
        BatchResult<GetResult> read = await _keys.GetManyAsync(
            items.Select(static item => item.Name), new BatchOptions { Atomic = true, Durability = _durability }, ct)
            .ConfigureAwait(_connection.CapturesContext);
        RequireOpen();
        for (int i = 0; i < items.Length; i++)
        {
            GetResult found = read[i].Result;
            items[i].Read(found.Found, found.Revision, found.Value, found.RemainingTtl);
        }

        return [.. items.Select(static item => item.Shown)];
    }

    /// <summary>Looks whether a key exists, without transferring its value.</summary>
    /// <inheritdoc cref="GetAsync"/>
    public async ValueTask<bool> ExistsAsync(string key, CancellationToken ct = default)
    {
        RequireOpen();
        TransactionKey item = Of(key);
        if (item.NeedsLook)
        {
            ExistsResult read = await _keys.ExistsAsync(key, new ReadOptions { Durability = _durability }, ct)
                .ConfigureAwait(_connection.CapturesContext);
            RequireOpen();
            item.Read(read.Found, read.Revision, null, read.RemainingTtl);
        }

        return item.Exists;
    }

    /// <summary>Writes a key at the commit. Without a read of it, it is written whatever it holds then.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">
    /// The value; <see cref="KahunaValue.Null"/> writes the null value. Its bytes are read until the commit completes.
    /// </param>
    /// <param name="ttl">
    /// Time to live, counted from the commit, 1 ms to 100 years; null: the key does not expire.
    /// </param>
    /// <param name="ct">Not used: the value waits in this client.</param>
    /// <exception cref="KahunaException"><see cref="KahunaErrorCode.TransactionEnded"/>: it is over.</exception>
    public ValueTask SetAsync(string key, KahunaValue value, TimeSpan? ttl = null, CancellationToken ct = default)
    {
        RequireOpen();
        Of(key).Set(value, ttl);
        return default;
    }

    /// <summary>Removes a key at the commit.</summary>
    /// <inheritdoc cref="SetAsync"/>
    public ValueTask DeleteAsync(string key, CancellationToken ct = default)
    {
        RequireOpen();
        Of(key).Delete();
        return default;
    }

    /// <summary>Sets a key's time to live at the commit, if the key exists then.</summary>
    /// <param name="key">The key.</param>
    /// <param name="ttl">1 ms to 100 years, counted from the commit; zero: the key does not expire.</param>
    /// <param name="ct">Not used: the change waits in this client.</param>
    /// <exception cref="KahunaException"><see cref="KahunaErrorCode.TransactionEnded"/>: it is over.</exception>
    public ValueTask ExtendAsync(string key, TimeSpan ttl, CancellationToken ct = default)
    {
        RequireOpen();
        Of(key).Extend(ttl);
        return default;
    }

    /// <summary>
    /// Reads a key that holds a decimal integer, and adds to it at the commit. A missing key counts as 0; the key keeps
    /// its time to live.
    /// </summary>
    /// <returns>The sum that the commit writes.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotAnInteger"/>, <see cref="KahunaErrorCode.Overflow"/>: nothing is added; the
    /// transaction goes on. For others see <see cref="GetAsync"/>.
    /// </exception>
    /// <inheritdoc cref="GetAsync"/>
    public async ValueTask<long> IncrementAsync(string key, long amount = 1, CancellationToken ct = default)
    {
        GetResult read = await GetAsync(key, ct).ConfigureAwait(_connection.CapturesContext);
        return Of(key).Increment(read, amount);
    }

    /// <summary>Commits the transaction.</summary>
    /// <param name="ct">Ends the wait; a commit that was sent may still take effect.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionConflict"/>: something that was read has changed. Run the transaction
    /// again from its beginning. <see cref="KahunaErrorCode.TransactionEnded"/>: it was committed or rolled back
    /// before, or its time is over. <see cref="KahunaErrorCode.InvalidArgument"/>: it is over a limit, or has a fence
    /// and keys of several partitions. <see cref="KahunaErrorCode.KeyInTransaction"/>: others were committing keys of
    /// it until the request timeout. Nothing was written in these cases. For others see
    /// <see cref="KahunaException.Outcome"/>; when that is <see cref="OperationOutcome.Unknown"/>,
    /// <see cref="TransactionClient.FindOutcomeAsync"/> finds it. The transaction is over in all of them.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task CommitAsync(CancellationToken ct = default)
    {
        RequireOpen();
        _book.State = TransactionState.Failed;
        KeyOperation[] writes = [.. _book.Keys.Select(static item => item.ToOperation()).OfType<KeyOperation>()];
        if (writes.Length == 0)
        {
            await ValidateAsync(ct).ConfigureAwait(_connection.CapturesContext);
            _book.State = TransactionState.Committed;
            return;
        }

        TransactionKey[] read = _book.Read;
        ConditionalTransaction commit = new ConditionalTransaction(_coordinator, _durability)
        {
            Conditions = [.. read.Select(static item => item.ToCondition())],
        }.Then(writes);
        commit = _options.Fence is { } fence ? commit.WithFence(fence) : commit;
        int? changed = await TransactionCalls.CommitAsync(_coordinator, commit, ct)
            .ConfigureAwait(_connection.CapturesContext);
        if (changed is { } first)
        {
            throw OperationErrors.Conflict(read[first].Name);
        }

        _book.State = TransactionState.Committed;
    }

    /// <summary>Ends the transaction without writing anything. After the end it does nothing.</summary>
    public Task RollbackAsync()
    {
        if (_book.State == TransactionState.Open)
        {
            _book.State = TransactionState.RolledBack;
        }

        return Task.CompletedTask;
    }

    /// <summary>Rolls back what was not committed.</summary>
    public ValueTask DisposeAsync() => new(RollbackAsync());

    /// <summary>It was committed or rolled back.</summary>
    internal bool IsOver => _book.State is TransactionState.Committed or TransactionState.RolledBack;

    /// <summary>Checks that nothing that was read has changed, at one moment.</summary>
    /// <exception cref="KahunaException">TransactionConflict: something has.</exception>
    internal async Task ValidateAsync(CancellationToken ct)
    {
        TransactionKey[] read = _book.Read;
        if (read.Length <= 1)
        {
            // A single read is of one moment.
            return;
        }

        BatchResult<ExistsResult> now = await _keys.LookAsync(
            read.Select(static item => (item.Name, item.Durability)), ct)
            .ConfigureAwait(_connection.CapturesContext);
        for (int i = 0; i < read.Length; i++)
        {
            read[i].RequireSame(now[i].Result.Found, now[i].Result.Revision);
        }
    }

    private TransactionKey Of(string key) => _book.Of(key, _durability);

    private void RequireOpen() => _book.RequireOpen();
}
