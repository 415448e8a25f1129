using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>
/// Numbers that nobody else gets: unique, in order, and without gaps. Part of a <see cref="KahunaClient"/>; any thread.
/// <para>
/// A sequence is persistent: a value that was handed out is on stable storage of a majority of the nodes and never comes again, whatever fails. Each allocation is one replicated command that is applied at
/// most once, so that no value is lost either, unless a call ends with <see cref="OperationOutcome.Unknown"/>. Names are 1 to 1,024 bytes of UTF-8 and do not begin with <c>__kahuna</c>; a sequence and a key
/// of the same name have nothing to do with each other.
/// </para>
/// <para>Failures are those of <see cref="KeyValues.KeyValues"/>. The returned value tasks are pooled: await each once.</para>
/// </summary>
public sealed class Sequences
{
    private readonly ClusterConnection _connection;
    private readonly SequenceBlocks _blocks;

    internal Sequences(ClusterConnection connection, TimeProvider time)
    {
        _connection = connection;
        _blocks = new SequenceBlocks(this, time);
    }

    /// <summary>Creates a sequence.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="definition">What it is to be like; null: 1, 2, 3 and so on.</param>
    /// <param name="ct">Ends the wait; a sequence may still be created.</param>
    /// <returns>True when it was created; false when there is one of this name, which stays as it is.</returns>
    /// <exception cref="KahunaException">The definition makes no sense, or the call failed: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> CreateAsync(string name, SequenceDefinition? definition = null, CancellationToken ct = default) =>
        (await ReplyAsync(CommandKind.SequenceCreate, name, (definition ?? new SequenceDefinition()).ToForm(), ct).ConfigureAwait(_connection.CapturesContext)).Status == OutcomeStatus.Applied;

    internal bool CapturesContext => _connection.CapturesContext;

    /// <summary>Begins something away from the caller.</summary>
    internal Task<T> Start<T>(Func<Task<T>> work) => _connection.Start(work);

    /// <summary>Takes the next value.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="options">A key that names this allocation, or the fast mode; null for neither.</param>
    /// <param name="ct">Ends the wait; a value may still be taken.</param>
    /// <exception cref="KahunaException">
    /// With <see cref="KahunaErrorCode.SequenceNotFound"/> there is no such sequence, with <see cref="KahunaErrorCode.SequenceExhausted"/> it has no value left; no value was taken. For other codes
    /// see <see cref="KahunaException.Outcome"/>: a value is lost only when it is unknown, and with an idempotency key not even then.
    /// </exception>
    /// <exception cref="ArgumentException">The fast mode together with an idempotency key, or a block size outside of 2 to 1,000,000.</exception>
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

    /// <summary>Takes several values that follow each other.</summary>
    /// <param name="name">Name of the sequence.</param>
    /// <param name="count">How many; 1 or more, and no more than are left.</param>
    /// <param name="options">A key that names this allocation; null for none. The mode is not looked at: what is asked for is taken, and no block.</param>
    /// <param name="ct">Ends the wait; values may still be taken.</param>
    /// <returns>
    /// The first and the last value. Without a key, a sequence that begins again gives what is left before its bound when that is less: <see cref="SequenceRange.Count"/> says it, and the next call begins
    /// behind the bound.
    /// </returns>
    /// <exception cref="KahunaException">As <see cref="NextAsync"/>; any other sequence that has fewer values left gives none, and the message says how many there are.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<SequenceRange> ReserveAsync(string name, long count, SequenceOptions? options = null, CancellationToken ct = default)
    {
        if (options?.IdempotencyKey is { } key)
        {
            // A key belongs to one count: what is left now is another one.
            Operation<SequenceRange> operation = Taking<SequenceRange>(name, count);
            operation.SetKey(key);
            return await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
        }

        long asked = count;
        while (true)
        {
            SequenceTake take = await _connection.Run(Taking<SequenceTake>(name, asked), ct).ConfigureAwait(_connection.CapturesContext);
            if (take.Range is { } range)
            {
                return range;
            }

            // It gets less with each answer, so that others who take values at the same time cannot hold this up for ever.
            asked = Math.Min(take.Left, asked - 1);
            if (await GetAsync(name, ct).ConfigureAwait(_connection.CapturesContext) is not { Cycle: true })
            {
                throw Failures.Exhausted(name, take.Left);
            }
        }
    }

    /// <summary>Describes a sequence.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>What it is like and how far it is; null when there is none.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it may be repeated at will.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<SequenceDescription?> GetAsync(string name, CancellationToken ct = default)
    {
        SequenceReply reply = await ReplyAsync(CommandKind.SequenceGet, name, null, ct).ConfigureAwait(_connection.CapturesContext);
        return reply.Status == OutcomeStatus.Found ? SequenceDescription.Read(name, reply.Value.Span) : null;
    }

    /// <summary>Changes what a sequence is like from the next value on.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="change">What is to change.</param>
    /// <param name="ct">Ends the wait; the change may still be made.</param>
    /// <returns>True when it was changed; false when there is none.</returns>
    /// <exception cref="KahunaException">The change makes no sense, or would leave the latest value outside of the bounds (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> UpdateAsync(string name, SequenceChange change, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(change);
        return (await ReplyAsync(CommandKind.SequenceUpdate, name, change.ToForm(), ct).ConfigureAwait(_connection.CapturesContext)).Status == OutcomeStatus.Applied;
    }

    /// <summary>Removes a sequence. One that is created under its name afterwards begins anew, and knows none of its idempotency keys.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait; the sequence may still be removed.</param>
    /// <returns>True when it was removed; false when there is none.</returns>
    /// <exception cref="KahunaException">The call failed: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> DeleteAsync(string name, CancellationToken ct = default)
    {
        bool deleted = (await ReplyAsync(CommandKind.SequenceDelete, name, null, ct).ConfigureAwait(_connection.CapturesContext)).Status == OutcomeStatus.Applied;
        _blocks.Drop(name);
        return deleted;
    }

    /// <summary>Every sequence whose name begins with a prefix, page by page, in no particular order. What exists all the time while the list is read is in it exactly once.</summary>
    /// <param name="prefix">The beginning of the names; empty for all.</param>
    /// <param name="ct">Ends the list.</param>
    /// <exception cref="KahunaException">A page could not be read.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<SequenceDescription> ListAsync(string prefix = "", [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        int partitions = await _connection.PartitionsAsync(ct).ConfigureAwait(_connection.CapturesContext);
        for (int partition = 0; partition < partitions; partition++)
        {
            long cursor = 0;
            do
            {
                Operation<SequenceReply> operation = Operation<SequenceReply>.Rent();
                operation.Begin(CommandKind.SequenceList, CommandDurability.Persistent, prefix);
                operation.AddNumber(partition);
                operation.AddReadRevision(cursor);
                operation.FixedPartition = partition;
                SequenceReply page = await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
                foreach (SequenceDescription sequence in SequenceDescription.ReadPage(page.Value.Span))
                {
                    yield return sequence;
                }

                cursor = page.Number;
            }
            while (cursor != 0);
        }
    }

    /// <summary>Takes several values, or says how many fewer are left. Fails with <see cref="KahunaErrorCode.SequenceExhausted"/> when there is none.</summary>
    internal ValueTask<SequenceTake> TryReserveAsync(string name, long count) => _connection.Run(Taking<SequenceTake>(name, count), CancellationToken.None);

    private static Operation<TResult> Taking<TResult>(string name, long count)
        where TResult : struct, IOperationResult<TResult>
    {
        ArgumentNullException.ThrowIfNull(name);
        Operation<TResult> operation = Operation<TResult>.Rent();
        operation.Begin(CommandKind.SequenceNext, CommandDurability.Persistent, name);
        operation.AddNumber(count);
        return operation;
    }

    private static void Check(SequenceOptions options)
    {
        if (options.IdempotencyKey is not null)
        {
            throw new ArgumentException("An idempotency key names one allocation, and the fast mode makes none for each call; give one of them.", nameof(options));
        }

        if (options.BlockSize is < 2 or > 1_000_000)
        {
            throw new ArgumentOutOfRangeException(nameof(options), options.BlockSize, "BlockSize must be 2 to 1,000,000.");
        }
    }

    private ValueTask<SequenceReply> ReplyAsync(CommandKind kind, string name, SequenceForm? form, CancellationToken ct)
    {
        ArgumentNullException.ThrowIfNull(name);
        Operation<SequenceReply> operation = Operation<SequenceReply>.Rent();
        operation.Begin(kind, CommandDurability.Persistent, name);
        if (form is { } written)
        {
            byte[] value = new byte[SequenceForm.Bytes];
            written.Write(value);
            operation.SetValue(value);
        }

        return _connection.Run(operation, ct);
    }
}
