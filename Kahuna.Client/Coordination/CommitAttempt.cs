using System.Runtime.ExceptionServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Coordination;

/// <summary>
/// One try to commit a transaction over several groups, under an id of its own: all groups prepare their parts, the
/// anchor's group decides, the others carry out the decision. Only this object wants the transaction committed; groups
/// that wait for too long have it aborted. Owned by one call; not thread-safe.
/// </summary>
internal sealed class CommitAttempt(
    ClusterConnection connection,
    CommitRequest request,
    TransactionParts parts,
    CommitName name,
    CommitDeadline time,
    DecisionCleanup cleanup)
{
    /// <summary>How often the decision is asked for, when sessions are lost.</summary>
    private const int DecideTriesMax = 3;

    private readonly byte[] _id = Encode(name.Id);
    private Task _forgetting = Task.CompletedTask;
    private KahunaException? _failure;
    private Exception? _end;

    /// <summary>Why the try failed, when it did for another reason than keys that are held; null otherwise.</summary>
    public KahunaException? Failure => _failure;

    /// <summary>What is still done after the end of <see cref="RunAsync"/>, and never fails.</summary>
    public Task Rest { get; private set; } = Task.CompletedTask;

    /// <summary>
    /// Runs the try. Returns null when nothing was written and another try, under another id, may succeed.
    /// </summary>
    public async Task<TransactionReply?> RunAsync(CancellationToken ct)
    {
        bool captures = connection.CapturesContext;
        Task preparing = PrepareAsync();
        try
        {
            await preparing.WaitAsync(ct).ConfigureAwait(captures);
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            Rest = AbortCanceledAsync(preparing);
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }

        if (_end is not null || _failure is not null)
        {
            Rest = AbortAndForgetAsync();
            return Retry();
        }

        if (parts.Prepared.Any(static part => part.State != PartState.Prepared))
        {
            await AbortAsync().ConfigureAwait(captures);
            Rest = _forgetting;
            if (parts.Prepared.Any(static part => part.Refusal == PrepareRefusal.RangeTooLarge))
            {
                throw TransactionErrors.Impossible(OutcomeStatus.RangeTooLarge, 0);
            }

            return parts.Prepared.Any(static part => part.Refusal == PrepareRefusal.ConditionFailed)
                ? ToReply(holds: false, withResults: false)
                : null;
        }

        bool holds = parts.Prepared.All(static part => part.Vote.Holds);
        if (Obstacle(holds) is { } impossible)
        {
            await AbortAsync().ConfigureAwait(captures);
            Rest = _forgetting;
            throw impossible;
        }

        return await CommitAsync(holds, ct).ConfigureAwait(captures);
    }

    /// <summary>Null for another try; otherwise throws what ended this one.</summary>
    private TransactionReply? Retry()
    {
        if (_end is not null)
        {
            ExceptionDispatchInfo.Throw(_end);
        }

        return _failure!.Code is KahunaErrorCode.OutcomeUnknown
            or KahunaErrorCode.Unavailable
            or KahunaErrorCode.DeadlineExceeded
            or KahunaErrorCode.ConnectionLost
            or KahunaErrorCode.KeyInTransaction
            || SpreadKeys.IsRefused(_failure)
            ? null
            : throw TransactionErrors.NothingWritten(_failure);
    }

    /// <summary>
    /// Prepares the parts. It ends with their answers also when the caller has gone: what is known of the anchor's part
    /// lets its decision be forgotten.
    /// </summary>
    private async Task PrepareAsync()
    {
        TransactionPart[] asked = [.. parts.Prepared];
        ValueTask<PrepareReply>[] tasks = new ValueTask<PrepareReply>[asked.Length];
        for (int i = 0; i < asked.Length; i++)
        {
            Operation<PrepareReply> operation = Begin<PrepareReply>(
                CommandKind.TransactionPrepare, asked[i].Durability, asked[i].KeyText, time.LeftToPrepare);
            operation.Request.SetValue(
                parts.Encode(asked[i], name.Id, CommitDeadline.PrepareMs, request.IsVerdictEnough));
            operation.Request.SetHolder(request.Holder);
            operation.Request.Account = request.Account;
            tasks[i] = connection.Run(operation, CancellationToken.None);
        }

        for (int i = 0; i < asked.Length; i++)
        {
            try
            {
                asked[i].Answered(await tasks[i].ConfigureAwait(connection.CapturesContext));
            }
            catch (KahunaException error)
            {
                _failure = Worse(_failure, error);
                asked[i].IsAbsent = error.Outcome == OperationOutcome.DidNotHappen;
            }
            catch (ObjectDisposedException closed)
            {
                _end ??= closed;
            }
        }
    }

    /// <summary>The failure that says more: one that another try cannot mend.</summary>
    private static KahunaException Worse(KahunaException? first, KahunaException second) =>
        first is null || (first.Outcome != OperationOutcome.DidNotHappen && second.IsSafeToRetry) ? second : first;

    /// <summary>Why the list cannot be carried out; null when it can.</summary>
    private KahunaException? Obstacle(bool holds)
    {
        int list = ListOf(holds);
        (OutcomeStatus Status, int Operation)? first = null;
        long bytes = 0;
        foreach (TransactionPart part in parts.All)
        {
            ListForecast forecast = part.ForecastOf(holds);
            bytes += forecast.ValueBytes;
            if (forecast.Status != OutcomeStatus.Applied)
            {
                int operation = forecast.Operation < part.Places[list].Count
                    ? part.Places[list][(int)forecast.Operation]
                    : 0;
                first = first is { } other && other.Operation <= operation ? first : (forecast.Status, operation);
            }
        }

        return first is { } found ? TransactionErrors.Impossible(found.Status, found.Operation)
            : bytes > Limits.TransactionBytesMax ? TransactionErrors.Impossible(OutcomeStatus.ReplyTooLarge, 0)
            : null;
    }

    private async Task<TransactionReply?> CommitAsync(bool holds, CancellationToken ct)
    {
        bool captures = connection.CapturesContext;
        TransactionDecision wanted = holds ? TransactionDecision.Then : TransactionDecision.Else;
        if (await DecideAsync(wanted, ct).ConfigureAwait(captures) is not { } reply)
        {
            Rest = AbortAndForgetAsync();
            return Retry();
        }

        if (reply.Decision != wanted)
        {
            // A group has waited for too long.
            await AbortAsync().ConfigureAwait(captures);
            Rest = _forgetting;
            return null;
        }

        parts.Anchor.IsFinished = true;
        parts.Anchor.Outcomes = parts.Anchor.Places[ListOf(holds)].Count == 0
            ? ReadOnlyMemory<byte>.Empty
            : reply.Outcomes;
        Task<KahunaException?> finishing = FinishAsync(wanted);
        if (request.IsVerdictEnough)
        {
            Rest = ForgetAsync(finishing);
            return ToReply(holds, withResults: false);
        }

        // A caller that is told the name of the transaction may ask for its decision, which is kept then.
        Rest = finishing;

        KahunaException? failure = null;
        try
        {
            failure = await finishing.WaitAsync(time.LeftForStep, connection.Time, ct).ConfigureAwait(captures);
        }
        catch (TimeoutException)
        {
            failure = TransactionErrors.NoResults();
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.Happened, ct) { TransactionId = name.ToString() };
        }

        bool isComplete = failure is null && parts.All.All(static part => part.Outcomes is not null);
        if (!isComplete && parts.Writes(ListOf(holds)))
        {
            throw TransactionErrors.ResultsNotKnown(failure, name.ToString());
        }

        // What only reads may be read again, at a later moment.
        _failure = failure;
        Rest = ForgetAsync(finishing);
        return isComplete ? ToReply(holds, withResults: true) : null;
    }

    /// <summary>Asks the anchor to decide. Null: it has not, and will not by this.</summary>
    private async Task<DecideReply?> DecideAsync(TransactionDecision wanted, CancellationToken ct)
    {
        bool mayHaveHappened = false;
        for (int tries = 1; ; tries++)
        {
            try
            {
                return await connection.Run(ToDecide(wanted, time.LeftForStep), ct)
                    .ConfigureAwait(connection.CapturesContext);
            }
            catch (KahunaException error) when (error.Outcome == OperationOutcome.DidNotHappen && !mayHaveHappened)
            {
                _failure = error;
                return null;
            }
            catch (KahunaException error)
            {
                // The first decision counts, so it is safe to ask again.
                mayHaveHappened = true;
                if (error.Code != KahunaErrorCode.OutcomeUnknown || tries == DecideTriesMax)
                {
                    throw TransactionErrors.NotKnown(error, name.ToString());
                }
            }
            catch (KahunaCanceledException canceled)
            {
                if (canceled.Outcome == OperationOutcome.DidNotHappen && !mayHaveHappened)
                {
                    _end = canceled;
                    return null;
                }

                throw new KahunaCanceledException(OperationOutcome.Unknown, ct) { TransactionId = name.ToString() };
            }
        }
    }

    /// <summary>Has the other parts carry out the decision. Returns why one has not; null when all have.</summary>
    private async Task<KahunaException?> FinishAsync(TransactionDecision decision)
    {
        TransactionPart[] open = [.. parts.All.Where(static part => !part.IsFinished)];
        ValueTask<FinishReply>[] tasks = new ValueTask<FinishReply>[open.Length];
        for (int i = 0; i < open.Length; i++)
        {
            Operation<FinishReply> operation = Begin<FinishReply>(
                CommandKind.TransactionFinish, open[i].Durability, open[i].KeyText, patience: null);
            operation.Request.AddNumber((long)decision);
            operation.Request.SetValue(_id);
            tasks[i] = connection.Run(operation, CancellationToken.None);
        }

        KahunaException? failure = null;
        for (int i = 0; i < open.Length; i++)
        {
            try
            {
                FinishReply reply = await tasks[i].ConfigureAwait(connection.CapturesContext);
                open[i].Outcomes = reply.Outcomes;
                open[i].IsFinished = true;
            }
            catch (KahunaException error)
            {
                failure ??= error;
            }
            catch (ObjectDisposedException)
            {
                failure ??= OperationErrors.Disposed(mayHaveHappened: true);
            }
        }

        return failure;
    }

    /// <summary>
    /// The caller has gone before all parts have answered. What is prepared is let go at once, and the others when they
    /// have answered. Never fails.
    /// </summary>
    private async Task AbortCanceledAsync(Task preparing)
    {
        await AbortAsync(forgets: false).ConfigureAwait(connection.CapturesContext);
        await preparing.ConfigureAwait(connection.CapturesContext);
        await AbortAndForgetAsync().ConfigureAwait(connection.CapturesContext);
    }

    private async Task AbortAndForgetAsync()
    {
        await AbortAsync().ConfigureAwait(connection.CapturesContext);
        await _forgetting.ConfigureAwait(connection.CapturesContext);
    }

    /// <summary>
    /// Gives the transaction up, as far as its groups can be reached; the others find out by themselves. Begins to have
    /// the decision forgotten. Never fails.
    /// </summary>
    private async Task AbortAsync(bool forgets = true)
    {
        foreach (TransactionPart part in parts.Prepared)
        {
            part.IsFinished = part.IsNotPrepared;
        }

        bool isDecided = parts.Anchor.IsFinished;

        // A late part of the anchor must find the decision. Others ask for it, and hear the same when it is forgotten.
        forgets &= parts.Anchor.State == PartState.Prepared;
        parts.Anchor.IsFinished = true;
        ValueTask<DecideReply> deciding = isDecided
            ? default
            : connection.Run(ToDecide(TransactionDecision.Abort, patience: null), CancellationToken.None);

        // Nobody else wants it committed, so the decision is known before it is made.
        Task<KahunaException?> finishing = FinishAsync(TransactionDecision.Abort);
        bool isRecorded = false;
        try
        {
            await deciding.ConfigureAwait(connection.CapturesContext);
            isRecorded = !isDecided;
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
        }

        if (await finishing.ConfigureAwait(connection.CapturesContext) is null && isRecorded && forgets)
        {
            _forgetting = ForgetAsync(finishing);
        }
    }

    /// <summary>Lets the anchor forget the decision once all parts have carried it out. Never fails.</summary>
    private async Task ForgetAsync(Task<KahunaException?> finishing)
    {
        if (await finishing.ConfigureAwait(connection.CapturesContext) is not null)
        {
            return;
        }

        await cleanup.ForgetAsync(parts.Anchor.Partition, name).ConfigureAwait(connection.CapturesContext);
    }

    private TransactionReply ToReply(bool holds, bool withResults)
    {
        ByteBuffer outcomes = ByteBuffer.Rent();
        parts.Join(outcomes, 0, static part => part.Conditions, OutcomeStatus.Applied);
        if (withResults)
        {
            parts.Join(outcomes, ListOf(holds), static part => part.Outcomes ?? default, OutcomeStatus.Unknown);
        }

        TransactionReply reply = new() { Holds = holds, Outcomes = outcomes.Written.ToArray() };
        outcomes.Return();
        return reply;
    }

    private Operation<DecideReply> ToDecide(TransactionDecision wanted, TimeSpan? patience)
    {
        Operation<DecideReply> operation = Begin<DecideReply>(
            CommandKind.TransactionDecide, Durability.Persistent, name.AnchorKey, patience);
        operation.Request.AddNumber((long)wanted);
        operation.Request.SetValue(_id);
        if (wanted != TransactionDecision.Abort)
        {
            // All parts are prepared. The next holder of the lock finds the keys held, or written.
            request.Fence?.ApplyTo(ref operation.Request);
        }

        return operation;
    }

    private static Operation<TReply> Begin<TReply>(
        CommandKind kind, Durability durability, string key, TimeSpan? patience)
        where TReply : struct, IOperationResult<TReply>
    {
        Operation<TReply> operation = Operation<TReply>.Rent();
        operation.Request.Begin(kind, durability, key);
        operation.Request.Patience = patience;
        return operation;
    }

    private static int ListOf(bool holds) => holds ? 1 : 2;

    private static byte[] Encode(TransactionId id)
    {
        byte[] bytes = new byte[TransactionId.Bytes];
        id.Write(bytes);
        return bytes;
    }
}
