using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Watches;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// The key/value operations of a cluster. Obtained from <see cref="KahunaClient.KeyValues"/>; any thread, any number of
/// concurrent calls.
/// <para>
/// Every operation, reads included, is linearizable: it takes effect at one moment between the call and its completion.
/// A majority of the nodes holds every acknowledged write. Names are 1 to 1,024 bytes of UTF-8 and do not begin with
/// <c>__kahuna</c>. Values are null or 0 bytes to the server's limit, 1 MiB by default.
/// </para>
/// <para>
/// A condition that does not hold and a missing key are results. Everything else is a <see cref="KahunaException"/>,
/// whose <see cref="KahunaException.Outcome"/> says whether the operation happened. Until the request timeout the
/// client retries by itself. Each write has a session number, so that the cluster applies it once. <c>Unknown</c> means
/// that no node answered in time. A cancelled call ends with a <see cref="KahunaCanceledException"/>; what was sent may
/// still be applied.
/// </para>
/// <para>
/// The returned tasks are pooled: await each once. The bytes of keys and values are read until the call completes, so
/// do not change them before.
/// </para>
/// </summary>
public sealed class KeyValueClient
{
    private readonly ClusterConnection _connection;
    private readonly ClientWatches _watches;
    private readonly BatchCalls _batches;
    private readonly KeyValueRequests _requests;
    private readonly Durability _durability;

    internal KeyValueClient(
        ClusterConnection connection,
        ClientWatches watches,
        BatchCalls batches,
        Durability durability)
    {
        _connection = connection;
        _watches = watches;
        _batches = batches;
        _durability = durability;
        _requests = new KeyValueRequests(durability);
    }

    /// <summary>Writes bytes, subject to the given conditions.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The value; no bytes are the empty value, not the null value.</param>
    /// <param name="options">Conditions, time to live and other options; null for none.</param>
    /// <param name="ct">Ends the wait; a write that was sent may still be applied.</param>
    /// <returns>
    /// Whether the value was written, and the key's revision, which grows by 1 with each write of the key.
    /// </returns>
    /// <exception cref="KahunaException">
    /// The write was refused, or its outcome is unknown: see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<SetResult> SetAsync(
        string key, ReadOnlyMemory<byte> value, SetOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Set(key, value, options), ct);

    /// <summary>Writes bytes; a null array writes the null value.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(
        string key, byte[]? value, SetOptions? options = null, CancellationToken ct = default) =>
        SetAsync(key, (KahunaValue)value, options, ct);

    /// <summary>Writes text as UTF-8; null writes the null value.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(
        string key, string? value, SetOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Set(key, value, options), ct);

    /// <summary>Writes a value that may be null: <c>SetAsync(key, KahunaValue.Null)</c>.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(
        string key, KahunaValue value, SetOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Set(key, value, options, andGet: false), ct);

    /// <summary>Writes a value and returns the one before it, in one step.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The value; <see cref="KahunaValue.Null"/> writes the null value.</param>
    /// <param name="options">Conditions, time to live and other options; null for none.</param>
    /// <param name="ct">Ends the wait; a write that was sent may still be applied.</param>
    /// <returns>As of a set with <see cref="SetOptions.ReturnPrevious"/>.</returns>
    /// <exception cref="KahunaException">
    /// The write was refused, or its outcome is unknown: see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<SetResult> GetAndSetAsync(
        string key, KahunaValue value, SetOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Set(key, value, options, andGet: true), ct);

    /// <summary>Reads a value: the latest, or that of a given revision.</summary>
    /// <param name="key">The key.</param>
    /// <param name="options">The revision to read and other options; null for the latest.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>
    /// Whether the key exists, its value, revision and remaining time to live. The value's bytes belong to the caller.
    /// </returns>
    /// <exception cref="KahunaException">The read could not be answered; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<GetResult> GetAsync(string key, ReadOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Read<GetResult>(key, options, isExists: false), ct);

    /// <summary>Checks whether a key exists, without transferring its value.</summary>
    /// <param name="key">The key.</param>
    /// <param name="options">The revision to read and other options; null for the latest.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>Whether the key exists, its revision and remaining time to live.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<ExistsResult> ExistsAsync(
        string key, ReadOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Read<ExistsResult>(key, options, isExists: true), ct);

    /// <summary>
    /// Removes a key, subject to the given conditions. Its revision continues if the key is written again.
    /// </summary>
    /// <param name="key">The key.</param>
    /// <param name="options">Conditions and other options; null for none.</param>
    /// <param name="ct">Ends the wait; a delete that was sent may still be applied.</param>
    /// <returns>Whether the key was removed, and the revision of the deletion.</returns>
    /// <exception cref="KahunaException">
    /// The delete was refused, or its outcome is unknown: see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<DeleteResult> DeleteAsync(
        string key, DeleteOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Delete(key, options), ct);

    /// <summary>Removes a key and returns the value that it had, in one step.</summary>
    /// <returns>As of a delete with <see cref="DeleteOptions.ReturnPrevious"/>.</returns>
    /// <inheritdoc cref="DeleteAsync"/>
    public ValueTask<DeleteResult> GetAndDeleteAsync(
        string key, DeleteOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Delete(key, options, andGet: true), ct);

    /// <summary>
    /// Sets a key's time to live, counted by the cluster's clock from the moment at which the call is applied.
    /// </summary>
    /// <param name="key">The key.</param>
    /// <param name="ttl">
    /// 1 ms to 100 years, rounded up to whole milliseconds; zero removes the time to live, so that the key does not
    /// expire.
    /// </param>
    /// <param name="options">Conditions and other options; null for none.</param>
    /// <param name="ct">Ends the wait; an extension that was sent may still be applied.</param>
    /// <returns>Whether the key has the new time to live, and its revision, which does not change.</returns>
    /// <exception cref="KahunaException">
    /// The call was refused, or its outcome is unknown: see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<ExtendResult> ExtendAsync(
        string key, TimeSpan ttl, ExtendOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Extend(key, ttl, options), ct);

    /// <summary>
    /// Adds a signed amount to a value that is a decimal integer in ASCII. A missing key counts as 0; an existing key
    /// keeps its time to live.
    /// </summary>
    /// <param name="key">The key.</param>
    /// <param name="amount">The amount to add; may be negative. 0 reads the integer and writes it back.</param>
    /// <param name="options">Durability and fence; null for the defaults.</param>
    /// <param name="ct">Ends the wait; an increment that was sent may still be applied.</param>
    /// <returns>The sum and its revision.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotAnInteger"/>: the value is not an integer. <see cref="KahunaErrorCode.Overflow"/>:
    /// the sum leaves the signed 64-bit range. Neither changes anything. For other codes see
    /// <see cref="KahunaException.Outcome"/>. The client's own retries count once; a further call after an unknown
    /// outcome is another increment.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<IncrementResult> IncrementAsync(
        string key, long amount = 1, IncrementOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Increment<IncrementResult>(key, amount, options), ct);

    /// <summary>
    /// As <see cref="IncrementAsync"/>, but a value that is not an integer and an overflow are results instead of
    /// exceptions.
    /// </summary>
    /// <param name="key">The key.</param>
    /// <param name="amount">The amount to add; may be negative.</param>
    /// <param name="options">Durability and fence; null for the defaults.</param>
    /// <param name="ct">Ends the wait; an increment that was sent may still be applied.</param>
    /// <returns>The status and, if the increment was applied, the sum and its revision.</returns>
    /// <exception cref="KahunaException">
    /// The call was refused for another reason, or its outcome is unknown.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<TryIncrementResult> TryIncrementAsync(
        string key, long amount = 1, IncrementOptions? options = null, CancellationToken ct = default) =>
        _connection.Run(_requests.Increment<TryIncrementResult>(key, amount, options), ct);

    /// <summary>
    /// Reads the keys that begin with a prefix, in the order of their UTF-8 bytes, over all partitions. Keys are read
    /// in pages while the caller goes on: each page shows one state of its partition, later pages show later ones. A
    /// key that exists throughout the scan is returned exactly once. With <see cref="ScanOptions.Consistent"/> all
    /// pages show one moment.
    /// </summary>
    /// <param name="prefix">The start of the keys; empty for all.</param>
    /// <param name="options">Bounds, direction and limit; null for none.</param>
    /// <param name="ct">Ends the scan.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the prefix or a bound is refused. Otherwise a page could not be
    /// read; the scan may be begun again.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">The limit or the page size is outside its range.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<KeyValueEntry> ScanAsync(
        string prefix = "", ScanOptions? options = null, [EnumeratorCancellation] CancellationToken ct = default)
    {
        RangeScan scan = await RangeScan.OpenAsync(_connection, _durability, prefix, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
        try
        {
            while (await scan.NextAsync(ct).ConfigureAwait(_connection.CapturesContext) is { } entry)
            {
                yield return entry;
            }
        }
        finally
        {
            scan.End();
        }
    }

    /// <summary>Counts the keys that begin with a prefix, as <see cref="ScanAsync"/> would find them.</summary>
    /// <param name="prefix">The start of the keys; empty for all.</param>
    /// <param name="options">Bounds; null for none. Direction and limit do not matter.</param>
    /// <param name="ct">Ends the count.</param>
    /// <exception cref="KahunaException">A page could not be read; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<long> CountAsync(
        string prefix = "", ScanOptions? options = null, CancellationToken ct = default)
    {
        options = (options ?? new ScanOptions()) with { KeysOnly = true };
        RangeScan scan = await RangeScan.OpenAsync(_connection, _durability, prefix, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
        try
        {
            return await scan.CountAsync(ct).ConfigureAwait(_connection.CapturesContext);
        }
        finally
        {
            scan.End();
        }
    }

    /// <summary>
    /// Writes many keys. Each item is a set of its own, with its own outcome, or all are one step
    /// (<see cref="BatchOptions.Atomic"/>). The limits of all items are checked before the first one is sent.
    /// </summary>
    /// <param name="items">The items, 1 to 10,000. Their values are read until the call completes.</param>
    /// <param name="options">Durability and atomicity; null for none.</param>
    /// <param name="ct">Ends the wait; what was sent may still be applied.</param>
    /// <returns>
    /// One outcome per item, in their order. Of an atomic batch all sets are applied, or none is.
    /// </returns>
    /// <exception cref="KahunaException">
    /// The batch is over a limit, and nothing was sent. Of an atomic batch: it was refused, or its outcome is unknown.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<BatchResult<SetResult>> SetManyAsync(
        IEnumerable<SetItem> items, BatchOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(items);
        IEnumerable<Operation<SetResult>> operations = items.Select(
            item => _requests.Set(item, options));
        return await _batches.RunAsync(operations, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>Removes many keys, as <see cref="SetManyAsync"/> writes them.</summary>
    /// <param name="items">The items, 1 to 10,000; a string is a key without conditions.</param>
    /// <param name="options">Durability and atomicity; null for none.</param>
    /// <param name="ct">Ends the wait; what was sent may still be applied.</param>
    /// <returns>One outcome per item, in their order. Of an atomic batch all conditions held, or nothing was
    /// deleted.</returns>
    /// <exception cref="KahunaException">As of <see cref="SetManyAsync"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<BatchResult<DeleteResult>> DeleteManyAsync(
        IEnumerable<DeleteItem> items, BatchOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(items);
        IEnumerable<Operation<DeleteResult>> operations = items.Select(
            item => _requests.Delete(item, options));
        return await _batches.RunAsync(operations, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>
    /// Reads many keys. Each read has its own moment, or all show the same one (<see cref="BatchOptions.Atomic"/>).
    /// </summary>
    /// <param name="keys">The keys, 1 to 10,000.</param>
    /// <param name="options">Durability and atomicity; null for none.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>One outcome per key, in their order.</returns>
    /// <exception cref="KahunaException">
    /// The batch is over a limit, or, of an atomic one, could not be answered; it is safe to repeat.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<BatchResult<GetResult>> GetManyAsync(
        IEnumerable<string> keys, BatchOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(keys);
        IEnumerable<Operation<GetResult>> operations = keys.Select(
            key => _requests.Read<GetResult>(key, options, isExists: false));
        return await _batches.RunAsync(operations, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>Checks many keys, as <see cref="GetManyAsync"/> reads them.</summary>
    /// <inheritdoc cref="GetManyAsync"/>
    public async ValueTask<BatchResult<ExistsResult>> ExistsManyAsync(
        IEnumerable<string> keys, BatchOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(keys);
        IEnumerable<Operation<ExistsResult>> operations = keys.Select(
            key => _requests.Read<ExistsResult>(key, options, isExists: true));
        return await _batches.RunAsync(operations, options, ct)
            .ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>Looks at one moment whether keys of any durability exist.</summary>
    internal async ValueTask<BatchResult<ExistsResult>> LookAsync(
        IEnumerable<(string Key, Durability Durability)> keys, CancellationToken ct)
    {
        IEnumerable<Operation<ExistsResult>> operations = keys.Select(
            key => _requests.Read<ExistsResult>(key.Key, new ReadOptions { Durability = key.Durability }, true));
        return await _batches.RunAsync(operations, new BatchOptions { Atomic = true }, ct)
            .ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>
    /// Removes the keys that begin with a prefix, in steps of at most 250 keys, one partition after the other. A key
    /// that exists from the call to its completion is removed. Each step takes effect at once; the call as a whole has
    /// no single moment, and the request timeout counts for each step. A call that failed or was cancelled may be
    /// repeated: it goes on with what is left.
    /// </summary>
    /// <param name="prefix">The start of the keys. Empty only with bounds or
    /// <see cref="DeleteByPrefixOptions.AllKeys"/>.</param>
    /// <param name="options">Bounds and other options; null for none.</param>
    /// <param name="progress">Is told the number of keys that are gone after each step; null for nobody.</param>
    /// <param name="ct">Ends the call between steps; a step that was sent may still be applied.</param>
    /// <returns>How many keys were removed.</returns>
    /// <exception cref="KahunaException">
    /// A step failed. The outcome is Unknown, and the message names their number, when earlier steps had removed keys.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<long> DeleteByPrefixAsync(
        string prefix,
        DeleteByPrefixOptions? options = null,
        IProgress<long>? progress = null,
        CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        options ??= new DeleteByPrefixOptions();
        int partitions = await _connection.PartitionsAsync(ct).ConfigureAwait(_connection.CapturesContext);
        RangeDeletion deletion = new(_connection, options.Durability ?? _durability, prefix, options);
        return await deletion.RunAsync(partitions, progress, ct).ConfigureAwait(_connection.CapturesContext);
    }

    /// <summary>
    /// Returns the changes of keys, in the order of their revisions and, within a partition, in the order in which they
    /// were applied: each one once, and none left out. The watch survives broken connections, leader changes and
    /// restarts of nodes. Where changes are no longer kept it says so (<see cref="WatchEventKind.Compacted"/>).
    /// <para>
    /// A watch from now begins when it is enumerated: a change that was acknowledged before is not returned. Use
    /// <see cref="WatchOptions.WithState"/>, <see cref="GetPositionAsync"/> or the position of a read where a change
    /// must not fall between a read and a watch.
    /// </para>
    /// </summary>
    /// <param name="prefix">The start of the keys, empty for all; or a key or bucket: see
    /// <see cref="WatchOptions.Scope"/>.</param>
    /// <param name="options">Where to begin, what to return and other options; null for none.</param>
    /// <param name="ct">Ends the watch.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the name or the position is refused. Or no node began the watch
    /// within the request timeout. A watch that has begun survives any outage.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public IAsyncEnumerable<WatchEvent> WatchAsync(
        string prefix, WatchOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        return _watches.Of(_durability, prefix, options ?? new WatchOptions(), ct);
    }

    /// <summary>
    /// Finds out where the changes are now. A watch that begins there returns every change that begins after this call
    /// has completed, and none that was acknowledged before the call.
    /// </summary>
    /// <param name="durability">The durability of the keys; null for the client's.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">A partition could not be asked; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<WatchPosition> GetPositionAsync(
        Durability? durability = null, CancellationToken ct = default) =>
        await _watches.NowAsync(durability ?? _durability, ct).ConfigureAwait(_connection.CapturesContext);

    /// <summary>Makes a local view of keys that a watch keeps current. Completes when the view is complete.</summary>
    /// <param name="prefix">The start of the keys, empty for all; or a key or bucket: see
    /// <see cref="CacheOptions.Scope"/>.</param>
    /// <param name="options">Limits and other options; null for none.</param>
    /// <param name="ct">Ends the wait for the complete view; it has no effect on the cache later.</param>
    /// <returns>The cache, which is the caller's to dispose.</returns>
    /// <exception cref="KahunaException">
    /// The name is refused, the keys are more than the cache may hold, or the cluster did not answer in time.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task<KeyValueCache> CacheAsync(
        string prefix, CacheOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        options ??= new CacheOptions();
        options.Check();
        KeyValueCache cache = new(_watches, prefix, options);
        await cache.BeginAsync(_durability, ct).ConfigureAwait(_connection.CapturesContext);
        return cache;
    }
}
