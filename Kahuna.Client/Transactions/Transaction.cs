using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Sequences;
using Kahuna.Wire;

namespace Kahuna.Client.Transactions;

/// <summary>
/// An interactive transaction. Obtained from <see cref="TransactionClient.BeginAsync"/>; one call at a
/// time.
/// <para>
/// Reads go to the cluster and are remembered; a key that is read again shows the same. Writes stay in the client, and
/// the transaction's own reads see them. The commit checks at one moment that nothing that was read has changed, and
/// writes everything, or nothing. So committed transactions are strictly serializable. Before the commit, reads of
/// different keys may be of different moments; <see cref="GetManyAsync"/> reads of one. A range that was scanned is
/// read as a whole: the commit checks that no key of it came or went.
/// </para>
/// <para>
/// Its keys may lie in any partitions, and be of both durabilities (<see cref="WithDurability"/>). Keys of one
/// durability and one bucket, which is the part of a name before the last <c>/</c>, are committed in one round trip;
/// other commits take about two more. It takes at most 1,000 keys, and 4 MiB of what it writes. Disposing it rolls it
/// back.
/// </para>
/// <para>
/// In <see cref="TransactionMode.Pessimistic"/> mode it holds each key from the first call that names it: others may
/// read the key, and also hold it if both only read it, but nobody else writes it. A call waits while others hold its
/// key. An abandoned transaction holds its keys until its timeout. An optimistic one holds nothing.
/// </para>
/// </summary>
public sealed class Transaction : IAsyncDisposable
{
    private readonly TransactionCoordinator _coordinator;
    private readonly ClusterConnection _connection;
    private readonly KeyValueClient _keys;
    private readonly SequenceClient _sequences;
    private readonly TransactionOptions _options;
    private readonly Durability _durability;
    private readonly TransactionBook _book;
    private readonly PessimisticHolds? _holds;

    internal Transaction(
        TransactionCoordinator coordinator,
        KeyValueClient keys,
        SequenceClient sequences,
        Durability durability,
        TransactionOptions options,
        TransactionAge age)
    {
        _coordinator = coordinator;
        _connection = coordinator.Connection;
        _keys = keys;
        _sequences = sequences;
        _options = options;
        _durability = options.Durability ?? durability;
        _book = new TransactionBook(_connection.Time, options.Timeout);
        _holds = options.Mode == TransactionMode.Pessimistic ? new PessimisticHolds(_connection, _book, age) : null;
    }

    private Transaction(Transaction other, Durability durability)
    {
        _coordinator = other._coordinator;
        _connection = other._connection;
        _keys = other._keys;
        _sequences = other._sequences;
        _options = other._options;
        _durability = durability;
        _book = other._book;
        _holds = other._holds;
    }

    /// <summary>
    /// The same transaction for keys of another durability, which is part of their names. Both are one: what is read
    /// and written through either is committed, or rolled back, together, by either.
    /// </summary>
    public Transaction WithDurability(Durability durability) => new(this, durability);

    /// <summary>
    /// Reads a key. A pessimistic transaction holds it from then on: others may read it, and nobody else writes it.
    /// </summary>
    /// <param name="key">The key.</param>
    /// <param name="ct">Ends the wait; the transaction goes on.</param>
    /// <returns>
    /// The value, or what this transaction wrote. Of a key that it wrote, the revision is 0 until the commit.
    /// </returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionConflict"/>: the key has changed since this transaction looked at it, or
    /// an older pessimistic transaction holds it or waits for it; then this one is over, and let its keys go.
    /// <see cref="KahunaErrorCode.TransactionEnded"/>: it is over. Otherwise the key could not be read; the transaction
    /// goes on.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<GetResult> GetAsync(string key, CancellationToken ct = default) =>
        ReadAsync(key, toWrite: false, ct);

    /// <summary>
    /// Reads a key that this transaction is going to write. A pessimistic transaction holds it alone from then on:
    /// others may read it, but not hold it. For an optimistic one it is the same as <see cref="GetAsync"/>.
    /// </summary>
    /// <inheritdoc cref="GetAsync"/>
    public ValueTask<GetResult> GetForUpdateAsync(string key, CancellationToken ct = default) =>
        ReadAsync(key, toWrite: true, ct);

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
        if (_holds is not null)
        {
            // One at a time, in the same order in all transactions, so that they do not cross.
            foreach (TransactionKey item in items.OrderBy(static item => item.Name, StringComparer.Ordinal))
            {
                await ReadAsync(item.Name, toWrite: false, ct).ConfigureAwait(_connection.CapturesContext);
            }

            return [.. items.Select(static item => item.Shown)];
        }

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
            if (_holds is not null)
            {
                GetResult held = await _holds.ReadAsync(item, toWrite: false, withValue: false, ct)
                    .ConfigureAwait(_connection.CapturesContext);
                RequireOpen();
                item.Read(held.Found, held.Revision, null, held.RemainingTtl);
                return item.Exists;
            }

            ExistsResult read = await _keys.ExistsAsync(key, new ReadOptions { Durability = _durability }, ct)
                .ConfigureAwait(_connection.CapturesContext);
            RequireOpen();
            item.Read(read.Found, read.Revision, null, read.RemainingTtl);
        }

        return item.Exists;
    }

    /// <summary>
    /// Reads the keys that begin with a prefix, in the order of their bytes, from all partitions. They show what this
    /// transaction has written before the scan; revisions of such keys are 0. The commit depends on all keys that were
    /// returned, and on that no key came or went between them: in the whole range when the scan came to its end, up to
    /// the last key otherwise. So there are no phantoms.
    /// </summary>
    /// <param name="prefix">The start of the keys; empty for all.</param>
    /// <param name="options">
    /// Bounds, direction and limit; null for none. The durability, where it names none, is the transaction's.
    /// </param>
    /// <param name="ct">Ends the scan; the transaction goes on.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the transaction would have more than 1,000 keys or 64 ranges. For
    /// others see <see cref="GetAsync"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public IAsyncEnumerable<KeyValueEntry> ScanAsync(
        string prefix = "", ScanOptions? options = null, CancellationToken ct = default)
    {
        RequireOpen();
        ArgumentNullException.ThrowIfNull(prefix);
        options ??= new ScanOptions();
        return new TransactionScan(_connection, _book, options.Durability ?? _durability, prefix, options).RunAsync(ct);
    }

    /// <summary>
    /// Counts the keys that begin with a prefix, as <see cref="ScanAsync"/> returns them. They count as read.
    /// </summary>
    /// <inheritdoc cref="ScanAsync"/>
    public async ValueTask<int> CountAsync(
        string prefix = "", ScanOptions? options = null, CancellationToken ct = default)
    {
        int count = 0;
        options = (options ?? new ScanOptions()) with { KeysOnly = true, Limit = null };
        await foreach (KeyValueEntry _ in ScanAsync(prefix, options, ct).ConfigureAwait(_connection.CapturesContext))
        {
            count++;
        }

        return count;
    }

    /// <summary>Writes a key at the commit. Without a read of it, it is written whatever it holds then.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">
    /// The value; <see cref="KahunaValue.Null"/> writes the null value. Its bytes are read until the commit completes.
    /// </param>
    /// <param name="ttl">
    /// Time to live, counted from the commit, 1 ms to 100 years; null: the key does not expire.
    /// </param>
    /// <param name="ct">
    /// Ends the wait of a pessimistic transaction for the key, which it holds alone from then on. Others do not wait:
    /// the value stays in this client.
    /// </param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionEnded"/>: it is over.
    /// <see cref="KahunaErrorCode.TransactionConflict"/>: it is pessimistic, and an older one holds the key or waits
    /// for it; it is over and let its keys go.
    /// </exception>
    public ValueTask SetAsync(string key, KahunaValue value, TimeSpan? ttl = null, CancellationToken ct = default) =>
        WriteAsync(key, item => item.Set(value, ttl), ct);

    /// <summary>Removes a key at the commit.</summary>
    /// <inheritdoc cref="SetAsync"/>
    public ValueTask DeleteAsync(string key, CancellationToken ct = default) =>
        WriteAsync(key, static item => item.Delete(), ct);

    /// <summary>Sets a key's time to live at the commit, if the key exists then.</summary>
    /// <param name="key">The key.</param>
    /// <param name="ttl">1 ms to 100 years, counted from the commit; zero: the key does not expire.</param>
    /// <inheritdoc cref="SetAsync"/>
    public ValueTask ExtendAsync(string key, TimeSpan ttl, CancellationToken ct = default) =>
        WriteAsync(key, item => item.Extend(ttl), ct);

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
        GetResult read = await GetForUpdateAsync(key, ct).ConfigureAwait(_connection.CapturesContext);
        return Of(key).Increment(read, amount);
    }

    /// <summary>
    /// Takes the next value of a sequence, at once: it is not part of the transaction, and a rollback or a conflict
    /// does not give it back.
    /// </summary>
    /// <param name="sequence">The name of the sequence.</param>
    /// <param name="ct">Ends the wait; a value may still be taken.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionEnded"/>: no value was taken. For others see
    /// <see cref="SequenceClient.NextAsync"/>; the transaction goes on.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<long> NextAsync(string sequence, CancellationToken ct = default)
    {
        RequireOpen();
        return _sequences.NextAsync(sequence, null, ct);
    }

    /// <summary>Commits the transaction.</summary>
    /// <param name="ct">Ends the wait; a commit that was sent may still take effect.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionConflict"/>: something that was read has changed. Run the transaction
    /// again from its beginning. <see cref="KahunaErrorCode.TransactionEnded"/>: it was committed or rolled back
    /// before, or its time is over. <see cref="KahunaErrorCode.InvalidArgument"/>: it is over a limit.
    /// <see cref="KahunaErrorCode.LockLost"/>: the fence's token does not hold the lock.
    /// <see cref="KahunaErrorCode.KeyInTransaction"/>: others were committing keys of it until the request timeout.
    /// Nothing was written in these cases. For others see <see cref="KahunaException.Outcome"/>; when that is
    /// <see cref="OperationOutcome.Unknown"/>, <see cref="TransactionClient.FindOutcomeAsync"/> finds it. The
    /// transaction is over in all of them.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task CommitAsync(CancellationToken ct = default)
    {
        RequireOpen();
        _book.State = TransactionState.Failed;
        try
        {
            await SendCommitAsync(ct).ConfigureAwait(_connection.CapturesContext);
        }
        catch (Exception) when (_holds is not null)
        {
            await _holds.ReleaseAsync().ConfigureAwait(_connection.CapturesContext);
            throw;
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

        return _holds?.ReleaseAsync() ?? Task.CompletedTask;
    }

    /// <summary>
    /// Rolls back what was not committed. A pessimistic transaction waits for a second at most until its keys are free;
    /// those that it could not free are so after its timeout.
    /// </summary>
    public ValueTask DisposeAsync() => new(RollbackAsync());

    /// <summary>It was committed or rolled back.</summary>
    internal bool IsOver => _book.State is TransactionState.Committed or TransactionState.RolledBack;

    /// <summary>Carries out operations if nothing that was read has changed.</summary>
    private async Task SendAsync(KeyOperation[] operations, Fence? fence, CancellationToken ct)
    {
        TransactionKey[] read = _book.Read;
        ConditionalTransaction commit = new ConditionalTransaction(_coordinator, _durability)
        {
            Conditions = [.. read.Select(static item => item.ToCondition()), .. _book.Ranges.ToConditions(read)],
            Holder = _holds?.Id ?? default,
        }.Then(operations);
        commit = fence is { } held ? commit.WithFence(held) : commit;
        int? changed = await TransactionCalls.CommitAsync(_coordinator, commit, ct)
            .ConfigureAwait(_connection.CapturesContext);
        if (changed is { } first)
        {
            throw first < read.Length
                ? OperationErrors.Conflict(read[first].Name)
                : OperationErrors.RangeConflict(_book.Ranges.All[first - read.Length].Name);
        }
    }

    /// <summary>Checks that nothing that was read has changed, at one moment.</summary>
    /// <exception cref="KahunaException">TransactionConflict: something has.</exception>
    internal async Task ValidateAsync(CancellationToken ct)
    {
        TransactionKey[] read = _book.Read;
        if (_book.Ranges.All is [{ } range, ..])
        {
            // Only a transaction can look at ranges and keys of one moment. It needs an operation, and any look is one.
            KeyOperation look = KeyOperation.Exists(read.FirstOrDefault()?.Name ?? "0")
                .WithDurability(read.FirstOrDefault()?.Durability ?? range.Durability);
            await SendAsync([look], fence: null, ct).ConfigureAwait(_connection.CapturesContext);
            return;
        }

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

    /// <summary>The key for which an older transaction stood in the way; null for none.</summary>
    internal RefusedHold? Refused => _holds?.Refused;

    /// <summary>Holds, before anything else, the key that an earlier try was refused.</summary>
    internal ValueTask TakeAgainAsync(RefusedHold? refused, CancellationToken ct) =>
        refused is null || _holds is null ? default : _holds.TakeAgainAsync(refused, ct);

    private async Task SendCommitAsync(CancellationToken ct)
    {
        KeyOperation[] writes = [.. _book.Keys.Select(static item => item.ToOperation()).OfType<KeyOperation>()];
        if (writes.Length == 0)
        {
            await ValidateAsync(ct).ConfigureAwait(_connection.CapturesContext);
            await (_holds?.ReleaseAsync() ?? Task.CompletedTask).ConfigureAwait(_connection.CapturesContext);
            return;
        }

        await SendAsync(writes, _options.Fence, ct).ConfigureAwait(_connection.CapturesContext);
        await (_holds?.CommittedAsync() ?? Task.CompletedTask).ConfigureAwait(_connection.CapturesContext);
    }

    private async ValueTask<GetResult> ReadAsync(string key, bool toWrite, CancellationToken ct)
    {
        RequireOpen();
        TransactionKey item = Of(key);
        if (_holds is not null && (item.NeedsValue || (toWrite && !_holds.HoldsToWrite(item))))
        {
            GetResult held = await _holds.ReadAsync(item, toWrite, withValue: true, ct)
                .ConfigureAwait(_connection.CapturesContext);
            RequireOpen();
            item.Read(held.Found, held.Revision, held.Value, held.RemainingTtl);
        }
        else if (item.NeedsValue)
        {
            GetResult read = await _keys.GetAsync(key, new ReadOptions { Durability = _durability }, ct)
                .ConfigureAwait(_connection.CapturesContext);
            RequireOpen();
            item.Read(read.Found, read.Revision, read.Value, read.RemainingTtl);
        }

        return item.Shown;
    }

    /// <summary>Notes a write of a key, which a pessimistic transaction holds from then on.</summary>
    private ValueTask WriteAsync(string key, Action<TransactionKey> write, CancellationToken ct)
    {
        RequireOpen();
        TransactionKey item = Of(key);
        if (_holds is not null)
        {
            return HoldAsync(_holds, item, write, ct);
        }

        write(item);
        return default;
    }

    private async ValueTask HoldAsync(
        PessimisticHolds holds, TransactionKey item, Action<TransactionKey> write, CancellationToken ct)
    {
        await holds.TakeToWriteAsync(item, ct).ConfigureAwait(_connection.CapturesContext);
        RequireOpen();
        write(item);
    }

    private TransactionKey Of(string key) => _book.Of(key, _durability);

    private void RequireOpen() => _book.RequireOpen();
}
