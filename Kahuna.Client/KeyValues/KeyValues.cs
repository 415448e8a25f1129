using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// The key/value operations. Obtained from <see cref="KahunaClient.KeyValues"/>; any thread, any number of calls at a time.
/// <para>
/// Every operation is linearizable, reads too: it takes effect at one moment between the call and its completion. An
/// acknowledged mutation is held by a majority of the nodes. Names are 1 to 1,024 bytes of UTF-8 and do not begin with
/// <c>__kahuna</c>; values are null or 0 bytes to the server's limit (1 MiB unless it was raised).
/// </para>
/// <para>
/// A condition that does not hold and a key that does not exist are results. Everything else is a
/// <see cref="KahunaException"/>, whose <see cref="KahunaException.Outcome"/> says whether the operation happened. The
/// client itself repeats reads, and mutations under the number that it gives to each, so that the cluster applies them
/// once, until the request timeout; <c>Unknown</c> means that no node has answered in time.
/// A cancelled call ends with a <see cref="KahunaCanceledException"/>; what was sent is not called back.
/// </para>
/// <para>
/// The returned tasks are pooled: await each once. Keys and values are read until the call completes, so a caller
/// must not change the bytes of a value before that.
/// </para>
/// </summary>
public sealed class KeyValues
{
    private readonly ClusterConnection _connection;
    private readonly Durability _durability;

    internal KeyValues(ClusterConnection connection, Durability durability)
    {
        _connection = connection;
        _durability = durability;
    }

    /// <summary>Writes bytes, subject to the conditions that are given.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The bytes; no bytes is the empty value, not the null value.</param>
    /// <param name="options">Conditions, time to live and the like; null for none.</param>
    /// <param name="ct">Ends the wait; a write that was sent may still be applied.</param>
    /// <returns>Whether the value was written, and the key's revision, which grows by 1 with each write of the key.</returns>
    /// <exception cref="KahunaException">The write was refused, or its end is not known: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<SetResult> SetAsync(string key, ReadOnlyMemory<byte> value, SetOptions? options = null, CancellationToken ct = default)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.SetValue(value);
        options?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>Writes bytes; a null array writes the null value. Otherwise as the overload for memory.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(string key, byte[]? value, SetOptions? options = null, CancellationToken ct = default) =>
        SetAsync(key, (KahunaValue)value, options, ct);

    /// <summary>Writes text as UTF-8; a null text writes the null value. Otherwise as the overload for memory.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(string key, string? value, SetOptions? options = null, CancellationToken ct = default)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.SetValue(value);
        options?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>Writes a value that may be null: <c>SetAsync(key, KahunaValue.Null)</c>. Otherwise as the overload for memory.</summary>
    /// <inheritdoc cref="SetAsync(string, ReadOnlyMemory{byte}, SetOptions?, CancellationToken)"/>
    public ValueTask<SetResult> SetAsync(string key, KahunaValue value, SetOptions? options = null, CancellationToken ct = default)
    {
        Operation<SetResult> operation = Begin<SetResult>(CommandKind.Set, key, options?.Durability);
        operation.SetValue(value.Memory);
        operation.AddFlag(CommandFlags.NullValue, value.IsNull);
        options?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>Reads a value: the latest, or the one that a given revision wrote.</summary>
    /// <param name="key">The key.</param>
    /// <param name="options">A revision to read at and the like; null for the latest.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>Whether the key exists, its value, revision and remaining time to live. The value's bytes are the caller's own.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it may be repeated at will.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<GetResult> GetAsync(string key, ReadOptions? options = null, CancellationToken ct = default)
    {
        Operation<GetResult> operation = Begin<GetResult>(CommandKind.Get, key, options?.Durability);
        operation.AddReadRevision(options?.AtRevision);
        return _connection.Run(operation, ct);
    }

    /// <summary>Tells whether a key exists, without transferring its value.</summary>
    /// <param name="key">The key.</param>
    /// <param name="options">A revision to read at and the like; null for the latest.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>Whether the key exists, its revision and remaining time to live.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it may be repeated at will.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<ExistsResult> ExistsAsync(string key, ReadOptions? options = null, CancellationToken ct = default)
    {
        Operation<ExistsResult> operation = Begin<ExistsResult>(CommandKind.Exists, key, options?.Durability);
        operation.AddReadRevision(options?.AtRevision);
        return _connection.Run(operation, ct);
    }

    /// <summary>Removes a key, subject to the conditions that are given. Its revision goes on counting when the key is written again.</summary>
    /// <param name="key">The key.</param>
    /// <param name="options">Conditions and the like; null for none.</param>
    /// <param name="ct">Ends the wait; a delete that was sent may still be applied.</param>
    /// <returns>Whether the key was removed, and the revision of the deletion.</returns>
    /// <exception cref="KahunaException">The delete was refused, or its end is not known: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<DeleteResult> DeleteAsync(string key, DeleteOptions? options = null, CancellationToken ct = default)
    {
        Operation<DeleteResult> operation = Begin<DeleteResult>(CommandKind.Delete, key, options?.Durability);
        options?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>Gives a key a new time to live, counted by the cluster's clock from the moment the call is applied.</summary>
    /// <param name="key">The key.</param>
    /// <param name="ttl">1 ms to 100 years, fractions of a millisecond are rounded up; zero removes the time to live, so that the key does not expire.</param>
    /// <param name="options">Conditions and the like; null for none.</param>
    /// <param name="ct">Ends the wait; an extension that was sent may still be applied.</param>
    /// <returns>Whether the key has its new time to live, and its revision, which stays as it is.</returns>
    /// <exception cref="KahunaException">The call was refused, or its end is not known: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<ExtendResult> ExtendAsync(string key, TimeSpan ttl, ExtendOptions? options = null, CancellationToken ct = default)
    {
        Operation<ExtendResult> operation = Begin<ExtendResult>(CommandKind.Extend, key, options?.Durability);
        operation.AddTtl(ttl);
        operation.AddComparison(options?.OnlyIfValue, options?.OnlyIfRevision);
        options?.Fence?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>Adds a signed amount to a value that is a decimal integer in ASCII. A key that does not exist counts as 0; the time to live of one that does stays as it is.</summary>
    /// <param name="key">The key.</param>
    /// <param name="amount">What is added; may be negative. 0 reads the integer and writes it back.</param>
    /// <param name="options">The durability level; null for the client's.</param>
    /// <param name="ct">Ends the wait; an increment that was sent may still be applied.</param>
    /// <returns>The sum and its revision.</returns>
    /// <exception cref="KahunaException">
    /// With <see cref="KahunaErrorCode.NotAnInteger"/> the value is no integer, with <see cref="KahunaErrorCode.Overflow"/>
    /// the sum is outside the signed 64-bit range; nothing was changed. For other codes see <see cref="KahunaException.Outcome"/>:
    /// the client repeats an increment by itself and it counts once; when its end is unknown after all, a further call would be another increment.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<IncrementResult> IncrementAsync(string key, long amount = 1, IncrementOptions? options = null, CancellationToken ct = default)
    {
        Operation<IncrementResult> operation = Begin<IncrementResult>(CommandKind.Increment, key, options?.Durability);
        operation.AddNumber(amount);
        options?.Fence?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    /// <summary>As <see cref="IncrementAsync"/>, but a value that is no integer and a sum outside the range are results instead of exceptions.</summary>
    /// <param name="key">The key.</param>
    /// <param name="amount">What is added; may be negative.</param>
    /// <param name="options">The durability level; null for the client's.</param>
    /// <param name="ct">Ends the wait; an increment that was sent may still be applied.</param>
    /// <returns>What happened, and if it was applied the sum and its revision.</returns>
    /// <exception cref="KahunaException">The call was refused for another reason, or its end is not known.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<TryIncrementResult> TryIncrementAsync(string key, long amount = 1, IncrementOptions? options = null, CancellationToken ct = default)
    {
        Operation<TryIncrementResult> operation = Begin<TryIncrementResult>(CommandKind.Increment, key, options?.Durability);
        operation.AddNumber(amount);
        options?.Fence?.ApplyTo(operation);
        return _connection.Run(operation, ct);
    }

    private Operation<TResult> Begin<TResult>(CommandKind kind, string key, Durability? durability)
        where TResult : struct, IOperationResult<TResult>
    {
        ArgumentNullException.ThrowIfNull(key);
        Operation<TResult> operation = Operation<TResult>.Rent();
        operation.Begin(kind, WireLevels.Of(durability ?? _durability), key);
        return operation;
    }
}
