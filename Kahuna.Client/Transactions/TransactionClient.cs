using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Sequences;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// Transactions on keys. Obtained from <see cref="KahunaClient.Transactions"/>; any thread, any number of concurrent
/// calls.
/// <code>
/// TransactionResult result = await client.Transactions
///     .If(KeyCondition.HasRevision("accounts/a", read.Revision))
///     .Then(KeyOperation.Set("accounts/a", "90"), KeyOperation.Increment("accounts/b", 10))
///     .Else(KeyOperation.Get("accounts/a"))
///     .CommitAsync(ct);
/// </code>
/// </summary>
public sealed class TransactionClient
{
    private static readonly TransactionOptions s_defaults = new();

    private readonly ClusterConnection _connection;
    private readonly TransactionCoordinator _coordinator;
    private readonly KeyValueClient _keys;
    private readonly SequenceClient _sequences;
    private readonly Durability _durability;

    internal TransactionClient(
        TransactionCoordinator coordinator, KeyValueClient keys, SequenceClient sequences, Durability durability)
    {
        _connection = coordinator.Connection;
        _coordinator = coordinator;
        _keys = keys;
        _sequences = sequences;
        _durability = durability;
    }

    /// <summary>Begins an interactive transaction. Nothing is sent before its first read.</summary>
    /// <param name="options">Durability, timeout and fence; null for the defaults.</param>
    /// <param name="ct">Not used: an optimistic transaction begins in this client.</param>
    /// <exception cref="ArgumentOutOfRangeException">An option is outside its range.</exception>
    public ValueTask<Transaction> BeginAsync(TransactionOptions? options = null, CancellationToken ct = default)
    {
        options ??= s_defaults;
        options.Check();
        TransactionAge age = new(_coordinator.NewId(), TransactionAge.At(_connection.Time));
        return new ValueTask<Transaction>(new Transaction(_coordinator, _keys, _sequences, _durability, options, age));
    }

    /// <summary>
    /// Runs work in a transaction and commits it. When something that it read has changed, the work is run again, with
    /// pauses that grow, until a commit succeeds or the tries or the time are used up.
    /// </summary>
    /// <param name="work">
    /// Reads and writes through the transaction, and returns a result. It may run several times, so it should change
    /// nothing else. It need not commit; when it rolls back, that is the end.
    /// </param>
    /// <param name="options">Durability, fence, and budget of tries and time; null for the defaults.</param>
    /// <param name="ct">Ends the work and the wait; a commit that was sent may still take effect.</param>
    /// <returns>The result of the work that was committed.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.TransactionConflict"/> or <see cref="KahunaErrorCode.KeyInTransaction"/>: each try
    /// met a change or a commit of others, and nothing was written. Otherwise as of
    /// <see cref="Transaction.CommitAsync"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    /// <remarks>
    /// An exception of the work rolls back and is passed on, unless what the work had read has changed.
    /// </remarks>
    public async Task<TResult> RunAsync<TResult>(
        Func<Transaction, Task<TResult>> work, TransactionOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(work);
        options ??= s_defaults;
        options.Check();
        long began = _connection.Time.GetTimestamp();
        long age = TransactionAge.At(_connection.Time);
        RefusedHold? refused = null;
        for (int tries = 1; ; tries++)
        {
            Transaction transaction = new(
                _coordinator, _keys, _sequences, _durability, options, new TransactionAge(_coordinator.NewId(), age));
            try
            {
                await transaction.TakeAgainAsync(refused, ct).ConfigureAwait(_connection.CapturesContext);
                TResult result = await TryAsync(transaction, work, ct).ConfigureAwait(_connection.CapturesContext);
                if (!transaction.IsOver)
                {
                    await transaction.CommitAsync(ct).ConfigureAwait(_connection.CapturesContext);
                }

                return result;
            }
            catch (KahunaException conflict) when (
                conflict.Outcome == OperationOutcome.DidNotHappen
                && conflict.Code is KahunaErrorCode.TransactionConflict or KahunaErrorCode.KeyInTransaction
                && tries < options.TriesMax
                && _connection.Time.GetElapsedTime(began) < options.Timeout)
            {
                // Where an older transaction stood in the way, the next try waits for it.
                refused = transaction.Refused;
                if (refused is null)
                {
                    await _coordinator.PauseAsync(tries, ct).ConfigureAwait(_connection.CapturesContext);
                }
            }
            finally
            {
                await transaction.DisposeAsync().ConfigureAwait(_connection.CapturesContext);
            }
        }
    }

    /// <summary>As the other one, for work without a result.</summary>
    /// <inheritdoc cref="RunAsync{TResult}"/>
    public async Task RunAsync(
        Func<Transaction, Task> work, TransactionOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(work);
        bool captures = _connection.CapturesContext;
        await RunAsync(
            async transaction =>
            {
                await work(transaction).ConfigureAwait(captures);
                return true;
            },
            options,
            ct).ConfigureAwait(captures);
    }

    /// <summary>
    /// Finds out whether a transaction over several partitions was committed. One that is not decided yet is aborted by
    /// this, so that the answer never changes.
    /// </summary>
    /// <param name="transactionId">
    /// What <see cref="KahunaException.TransactionId"/> or <see cref="KahunaCanceledException.TransactionId"/> says;
    /// any client of the cluster may ask, within nine minutes by its clock.
    /// </param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the text is no such name, or too old: the cluster remembers a
    /// decision for ten minutes. Otherwise the partition did not answer; it is safe to ask again.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task<TransactionOutcome> FindOutcomeAsync(string transactionId, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(transactionId);
        TransactionDecision decision = await _coordinator.SettleAsync(transactionId, ct)
            .ConfigureAwait(_connection.CapturesContext);
        return decision switch
        {
            TransactionDecision.Then => TransactionOutcome.Committed,
            TransactionDecision.Else => TransactionOutcome.CommittedElse,
            _ => TransactionOutcome.NotCommitted,
        };
    }

    /// <summary>
    /// Begins a transaction of one round trip: when all conditions hold, the operations of
    /// <see cref="ConditionalTransaction.Then"/> are carried out, otherwise those of
    /// <see cref="ConditionalTransaction.Else"/>. Nothing is sent before
    /// <see cref="ConditionalTransaction.CommitAsync"/>.
    /// </summary>
    /// <param name="conditions">The conditions; without any, they hold.</param>
    public ConditionalTransaction If(params IEnumerable<KeyCondition> conditions)
    {
        ArgumentNullException.ThrowIfNull(conditions);
        return new ConditionalTransaction(_coordinator, _durability) { Conditions = [.. conditions] };
    }

    /// <summary>
    /// Runs the work. What it throws may come from reads of different moments: then there is a conflict.
    /// </summary>
    private async Task<TResult> TryAsync<TResult>(
        Transaction transaction, Func<Transaction, Task<TResult>> work, CancellationToken ct)
    {
        try
        {
            return await work(transaction).ConfigureAwait(_connection.CapturesContext);
        }
        catch (Exception failure) when (failure is not (KahunaException or OperationCanceledException))
        {
            await transaction.ValidateAsync(ct).ConfigureAwait(_connection.CapturesContext);
            throw;
        }
    }
}

/// <summary>
/// A transaction of one round trip. Immutable: each call returns a new one, and each may be committed many times.
/// <para>
/// It takes effect at one moment, all of it or nothing, and is at most once like a single write. Its keys may lie in
/// any partitions and be of both durabilities. Keys of one durability and one bucket, which is the part of a name
/// before the last <c>/</c>, take one round trip; others about three. Each list takes a key once, and has at most 1,000
/// items; all items together have at most 4 MiB, and so have the values of the answer.
/// </para>
/// </summary>
public sealed class ConditionalTransaction
{
    private readonly TransactionCoordinator _coordinator;
    private Durability _durability;
    private Fence? _fence;

    internal ConditionalTransaction(TransactionCoordinator coordinator, Durability durability)
    {
        _coordinator = coordinator;
        _durability = durability;
    }

    internal KeyCondition[] Conditions { get; init; } = [];

    internal KeyOperation[] ThenOperations { get; private init; } = [];

    internal KeyOperation[] ElseOperations { get; private init; } = [];

    internal Durability Durability => _durability;

    internal Fence? Fence => _fence;

    /// <summary>The id of the pessimistic transaction whose commit it is; empty for none.</summary>
    internal ReadOnlyMemory<byte> Holder { get; init; }

    /// <summary>Adds operations for the case that all conditions hold.</summary>
    public ConditionalTransaction Then(params IEnumerable<KeyOperation> operations)
    {
        ArgumentNullException.ThrowIfNull(operations);
        return Copy([.. ThenOperations, .. operations], ElseOperations);
    }

    /// <summary>Adds operations for the case that a condition does not hold.</summary>
    public ConditionalTransaction Else(params IEnumerable<KeyOperation> operations)
    {
        ArgumentNullException.ThrowIfNull(operations);
        return Copy(ThenOperations, [.. ElseOperations, .. operations]);
    }

    /// <summary>
    /// Sets the durability of the keys whose conditions and operations name none; else it is the client's. It is part
    /// of the keys' names.
    /// </summary>
    public ConditionalTransaction WithDurability(Durability durability)
    {
        ConditionalTransaction copy = Copy(ThenOperations, ElseOperations);
        copy._durability = durability;
        return copy;
    }

    /// <summary>
    /// Commits only while the token's holder has the lock; otherwise the call fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. A lock in the bucket of the first key has the durability of the keys
    /// when they all lie in its partition. Any other lock, and that of keys in several partitions or of both
    /// durabilities, is a persistent one.
    /// </summary>
    public ConditionalTransaction WithFence(Fence fence)
    {
        ConditionalTransaction copy = Copy(ThenOperations, ElseOperations);
        copy._fence = fence;
        return copy;
    }

    /// <summary>Sends the transaction.</summary>
    /// <param name="ct">Ends the wait; a transaction that was sent may still be applied.</param>
    /// <returns>Whether the conditions held, and the results of the operations that were carried out.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: it is over a limit. <see cref="KahunaErrorCode.LockLost"/>: the
    /// fence's token does not hold the lock. <see cref="KahunaErrorCode.KeyInTransaction"/>: others were committing
    /// keys of it until the request timeout. <see cref="KahunaErrorCode.RangeTooLarge"/>: a range that it depends on
    /// has too many rows. <see cref="KahunaErrorCode.NotAnInteger"/>, <see cref="KahunaErrorCode.Overflow"/>: an
    /// increment cannot be carried out. <see cref="KahunaErrorCode.ReplyTooLarge"/>: the values of the answer exceed
    /// 4 MiB. None of these changed anything. For other codes see <see cref="KahunaException.Outcome"/>:
    /// <see cref="OperationOutcome.Happened"/> says that it is committed and its results are not known; when it is
    /// <see cref="OperationOutcome.Unknown"/>, <see cref="TransactionClient.FindOutcomeAsync"/> finds it.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task<TransactionResult> CommitAsync(CancellationToken ct = default) =>
        await TransactionCalls.RunAsync(_coordinator, this, ct)
            .ConfigureAwait(_coordinator.Connection.CapturesContext);

    private ConditionalTransaction Copy(KeyOperation[] then, KeyOperation[] @else) =>
        new(_coordinator, _durability)
        {
            Conditions = Conditions,
            Holder = Holder,
            ThenOperations = then,
            ElseOperations = @else,
            _fence = _fence,
        };
}
