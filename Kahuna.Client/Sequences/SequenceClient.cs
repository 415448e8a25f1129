using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>
/// Sequences of unique numbers, in order and without gaps. Obtained from <see cref="KahunaClient.Sequences"/>; any
/// thread, any number of concurrent calls.
/// <para>
/// Sequences are persistent: a value is on stable storage of a majority of the nodes before it is returned, and it is
/// never returned again. Each allocation is one replicated command that is applied at most once. So a value is lost
/// only if a call ends with <see cref="OperationOutcome.Unknown"/>. Names are 1 to 1,024 bytes of UTF-8 and do not
/// begin with <c>__kahuna</c>. A sequence and a key of the same name are unrelated.
/// </para>
/// <para>
/// Errors are those of <see cref="KeyValues.KeyValueClient"/>. The returned value tasks are pooled: await each once.
/// </para>
/// </summary>
public sealed class SequenceClient
{
    private readonly ClusterConnection _connection;
    private readonly SequenceBlocks _blocks;
    private readonly ConnectionClock _clock;

    internal SequenceClient(ClusterConnection connection, TimeProvider time)
    {
        _connection = connection;
        _clock = new ConnectionClock(time);
        _blocks = new SequenceBlocks(this, time);
    }

    /// <summary>Creates a sequence.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="definition">Start, step, bounds and cycling; null for 1, 2, 3 and so on.</param>
    /// <param name="ct">Ends the wait; the sequence may still be created.</param>
    /// <returns>True when it was created; false when a sequence of this name exists, which is unchanged.</returns>
    /// <exception cref="KahunaException">
    /// The definition is invalid (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed: see
    /// <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> CreateAsync(
        string name, SequenceDefinition? definition = null, CancellationToken ct = default)
    {
        SequenceBody body = (definition ?? new SequenceDefinition()).ToBody();
        SequenceReply reply = await ReplyAsync(CommandKind.SequenceCreate, name, body, ct)
            .ConfigureAwait(_connection.CapturesContext);
        return reply.Status == OutcomeStatus.Applied;
    }

    internal bool CapturesContext => _connection.CapturesContext;

    /// <summary>Starts work that is detached from the caller.</summary>
    internal Task<T> Start<T>(Func<Task<T>> work) => _connection.Start(work);

    /// <summary>Takes the next value.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="options">An idempotency key or the fast mode; null for neither.</param>
    /// <param name="ct">Ends the wait; a value may still be taken.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.SequenceNotFound"/>: the sequence does not exist.
    /// <see cref="KahunaErrorCode.SequenceExhausted"/>: it has no value left. Neither takes a value. For other codes
    /// see <see cref="KahunaException.Outcome"/>: a value may be lost only if it is unknown, and never with an
    /// idempotency key.
    /// </exception>
    /// <exception cref="ArgumentException">
    /// The fast mode was combined with an idempotency key, or the block size is outside 2 to 1,000,000.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<long> NextAsync(string name, SequenceOptions? options = null, CancellationToken ct = default)
    {
        if (options?.Mode == SequenceMode.Fast)
        {
            ArgumentNullException.ThrowIfNull(name);
            Check(options);
            if (_blocks.TryGet(name, options.BlockSize, out SequenceBlock? block))
            {
                return await block.NextAsync(ct).ConfigureAwait(_connection.CapturesContext);
            }
        }

        return (await ReserveAsync(name, 1, options, ct).ConfigureAwait(_connection.CapturesContext)).First;
    }

    /// <summary>Takes several consecutive values.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="count">The number of values: 1 or more, and at most as many as are left.</param>
    /// <param name="options">
    /// An idempotency key; null for none. The mode is ignored: the call takes exactly the requested values.
    /// </param>
    /// <param name="ct">Ends the wait; values may still be taken.</param>
    /// <returns>
    /// The first and last value. Without an idempotency key, a sequence that cycles returns fewer values if fewer are
    /// left before its bound. <see cref="SequenceRange.Count"/> is then smaller, and the next call continues after the
    /// bound.
    /// </returns>
    /// <exception cref="KahunaException">
    /// As <see cref="NextAsync"/>. A sequence that does not cycle and has fewer values left takes none; the message
    /// says how many are left.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<SequenceRange> ReserveAsync(
        string name, long count, SequenceOptions? options = null, CancellationToken ct = default)
    {
        if (options?.IdempotencyKey is { } key)
        {
            // A key belongs to one count, so it cannot be repeated with the number of values left.
            Operation<SequenceRange> operation = Taking<SequenceRange>(name, count);
            operation.SetIdempotencyKey(key);
            return await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
        }

        long asked = count;
        long end = EndOfCall();
        while (true)
        {
            SequenceTake take = await _connection.Run(Taking<SequenceTake>(name, asked, LeftUntil(end)), ct)
                .ConfigureAwait(_connection.CapturesContext);
            if (take.Range is { } range)
            {
                return range;
            }

            // The count shrinks with each answer, so that concurrent callers cannot delay this forever.
            asked = Math.Min(take.Left, asked - 1);
            if (await GetAsync(name, LeftUntil(end), ct).ConfigureAwait(_connection.CapturesContext)
                is not { Cycle: true })
            {
                throw OperationErrors.Exhausted(name, take.Left);
            }
        }
    }

    /// <summary>Reads the definition and the latest value of a sequence.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The sequence; null when it does not exist.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<SequenceDescription?> GetAsync(string name, CancellationToken ct = default) =>
        GetAsync(name, null, ct);

    private async ValueTask<SequenceDescription?> GetAsync(string name, TimeSpan? patience, CancellationToken ct)
    {
        SequenceReply reply = await ReplyAsync(CommandKind.SequenceGet, name, null, ct, patience)
            .ConfigureAwait(_connection.CapturesContext);
        return reply.Status == OutcomeStatus.Found ? SequenceDescription.Read(name, reply.Value.Span) : null;
    }

    /// <summary>Changes the definition of a sequence from the next value on.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="change">The properties to change.</param>
    /// <param name="ct">Ends the wait; the change may still be applied.</param>
    /// <returns>True when the sequence was changed; false when it does not exist.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the change is invalid or would leave the latest value outside the
    /// bounds. For other codes see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> UpdateAsync(string name, SequenceChange change, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(change);
        SequenceReply reply = await ReplyAsync(CommandKind.SequenceUpdate, name, change.ToBody(), ct)
            .ConfigureAwait(_connection.CapturesContext);
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>
    /// Removes a sequence. A new one of the same name starts anew and has none of its idempotency keys.
    /// </summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="ct">Ends the wait; the sequence may still be removed.</param>
    /// <returns>True when the sequence was removed; false when it does not exist.</returns>
    /// <exception cref="KahunaException">The call failed: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> DeleteAsync(string name, CancellationToken ct = default)
    {
        SequenceReply reply = await ReplyAsync(CommandKind.SequenceDelete, name, null, ct)
            .ConfigureAwait(_connection.CapturesContext);
        _blocks.Drop(name);
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>
    /// Lists the sequences whose names begin with a prefix, page by page, in no particular order. One that exists
    /// throughout the listing appears exactly once.
    /// </summary>
    /// <param name="prefix">The start of the names; empty for all.</param>
    /// <param name="ct">Ends the listing.</param>
    /// <exception cref="KahunaException">A page could not be read.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<SequenceDescription> ListAsync(
        string prefix = "", [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        int partitions = await _connection.PartitionsAsync(ct).ConfigureAwait(_connection.CapturesContext);
        for (int partition = 0; partition < partitions; partition++)
        {
            long cursor = 0;
            do
            {
                Operation<SequenceReply> operation = Operation<SequenceReply>.Rent();
                operation.Request.Begin(CommandKind.SequenceList, Durability.Persistent, prefix);
                operation.Request.SetPage(partition, cursor);
                SequenceReply page = await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
                foreach (SequenceDescription sequence in SequenceDescription.ReadPage(page.Value.Span))
                {
                    yield return sequence;
                }

                cursor = page.Cursor;
            }
            while (cursor != 0);
        }
    }

    /// <summary>
    /// Takes several values, or returns how many are left if those are fewer. Fails with
    /// <see cref="KahunaErrorCode.SequenceExhausted"/> if none is left.
    /// </summary>
    internal ValueTask<SequenceTake> TryReserveAsync(string name, long count, TimeSpan patience) =>
        _connection.Run(Taking<SequenceTake>(name, count, patience), CancellationToken.None);

    /// <summary>When a call that begins now has to end, however many requests it makes.</summary>
    internal long EndOfCall() => _clock.Now + _connection.RequestTimeout;

    /// <summary>What is left until the end of a call; zero when it is over.</summary>
    internal TimeSpan LeftUntil(long end) => _clock.Span(Math.Max(0, end - _clock.Now));

    private static Operation<TResult> Taking<TResult>(string name, long count, TimeSpan? patience = null)
        where TResult : struct, IOperationResult<TResult>
    {
        ArgumentNullException.ThrowIfNull(name);
        Operation<TResult> operation = Operation<TResult>.Rent();
        operation.Request.Begin(CommandKind.SequenceNext, Durability.Persistent, name);
        operation.Request.AddNumber(count);
        operation.Request.Patience = patience;
        return operation;
    }

    private static void Check(SequenceOptions options)
    {
        if (options.IdempotencyKey is not null)
        {
            throw new ArgumentException(
                "An idempotency key names one allocation, and the fast mode has none for each "
                    + "call; set only one of them.",
                nameof(options));
        }

        if (options.BlockSize is < 2 or > 1_000_000)
        {
            throw new ArgumentOutOfRangeException(
                nameof(options), options.BlockSize, "BlockSize must be 2 to 1,000,000.");
        }
    }

    private ValueTask<SequenceReply> ReplyAsync(
        CommandKind kind, string name, SequenceBody? body, CancellationToken ct, TimeSpan? patience = null)
    {
        ArgumentNullException.ThrowIfNull(name);
        Operation<SequenceReply> operation = Operation<SequenceReply>.Rent();
        operation.Request.Begin(kind, Durability.Persistent, name);
        operation.Request.Patience = patience;
        if (body is { } written)
        {
            byte[] value = new byte[SequenceBody.Bytes];
            written.Write(value);
            operation.Request.SetValue(value);
        }

        return _connection.Run(operation, ct);
    }
}
