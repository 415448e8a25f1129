using System.Diagnostics;
using System.Threading.Tasks.Sources;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Connection;

/// <summary>
/// One call from its arguments to its result: the request, the state of its attempts, its session number and the reply.
/// Pooled. Owned by the caller from the rent to <see cref="ClusterConnection.Run{TResult}"/>, then by its current
/// holder: a stream's slot or queue, or the list of operations that wait to be sent again. The holder that wins
/// <see cref="TryEnd"/> ends it; the caller's await then returns it to the pool.
/// </summary>
internal abstract class Operation : Answer
{
    private const int Held = 1;
    private const int Ended = 2;
    private const int States = 4;

    /// <summary>The arguments of the call.</summary>
    public OperationRequest Request;

    /// <summary>The state of the attempts to send it.</summary>
    public OperationAttempt Attempt;

    /// <summary>The session number that all attempts of a mutation carry.</summary>
    public SessionNumber SessionNumber;

    // Four times the generation plus the state, so that a holder of an older generation can never end a newer one.
    private int _tag = Ended;

    private OperationTimer _timer;

    protected Operation() => Attempt.Clear();

    /// <inheritdoc/>
    public override bool IsRead => Request.IsRead;

    /// <inheritdoc/>
    public override ReadOnlySpan<byte> Key => Request.Key;

    /// <inheritdoc/>
    public override long Number => Request.Number;

    /// <inheritdoc/>
    public override ReadOnlySpan<byte> FenceName => Request.FenceName;

    /// <inheritdoc/>
    public override FencingToken FenceToken => Request.FenceToken;

    /// <inheritdoc/>
    public override bool IsKeyed => Request.IsKeyed;

    /// <summary>True when it waits for a node or a leader, and not for an overloaded node to recover.</summary>
    public bool WaitsForRoute => LastRefusal == OutcomeStatus.Unset
        || OutcomeStatuses.RetryOf(LastRefusal) is RetryRule.AnotherWay or RetryRule.AnotherNode;

    /// <summary>True when a caller's token can end it at any moment.</summary>
    public bool IsCancelable { get; protected set; }

    /// <summary>This operation in its current generation.</summary>
    public OperationRef Reference => new(this, Volatile.Read(ref _tag) / States, IsCancelable);

    /// <inheritdoc cref="OperationRef.IsPending"/>
    public bool IsPending(int generation) => Volatile.Read(ref _tag) - (generation * States) is 0 or Held;

    /// <inheritdoc cref="OperationRef.TryEnd"/>
    public bool TryEnd(int generation)
    {
        int pending = generation * States;
        SpinWait spin = default;
        while (true)
        {
            int seen = Interlocked.CompareExchange(ref _tag, pending | Ended, pending);
            if (seen != (pending | Held))
            {
                return seen == pending;
            }

            spin.SpinOnce();
        }
    }

    /// <inheritdoc cref="OperationRef.TryHold"/>
    public bool TryHold(int generation)
    {
        int pending = generation * States;
        return Interlocked.CompareExchange(ref _tag, pending | Held, pending) == pending;
    }

    /// <inheritdoc cref="OperationRef.Release"/>
    public void Release(int generation) => Volatile.Write(ref _tag, generation * States);

    /// <summary>Names the call by an idempotency key instead of a number of the client's session.</summary>
    public void SetIdempotencyKey(string key) => SessionNumber.Give(Request.AddIdempotencyKey(key), sequence: 1);

    /// <summary>
    /// The request as the wire has it; its spans point into this operation. Session and number are the same for every
    /// attempt.
    /// </summary>
    /// <param name="holdLeftMs">As for <see cref="OperationRequest.ToCommand"/>.</param>
    public Command ToCommand(long holdLeftMs)
    {
        Command command = Request.ToCommand(holdLeftMs);
        if (!SessionNumber.IsNone)
        {
            command.Flags |= SessionNumber.FlagsFor(Attempt.Route);
            command.SessionId = SessionNumber.SessionId;
            command.Sequence = SessionNumber.Sequence;
            command.Lag = SessionNumber.Lag;
            if (Request.Durability == Durability.Ephemeral)
            {
                command.Epoch = SessionNumber.GivenEpoch != 0 ? SessionNumber.GivenEpoch : (ushort)Attempt.Epoch;
            }
        }

        return command;
    }

    /// <summary>It begins, and is timed and traced if somebody wants to know.</summary>
    public void Measure(TimeProvider time) => _timer.Begin(time, in Request);

    /// <summary>The activity that nodes are told about; null: nobody traces it.</summary>
    public Activity? Traced => _timer.Traced;

    /// <inheritdoc cref="ClientMeter.Retried"/>
    public void Retried(bool isMove) => _timer.Retried(in Request, isMove);

    /// <summary>
    /// Ends it with a reply. The caller has won <see cref="TryEnd"/> and holds no lock, because continuations may run
    /// before this returns.
    /// </summary>
    public void Complete(scoped in Outcome outcome)
    {
        if (outcome.Status < OutcomeStatus.InvalidArgument)
        {
            SessionNumber.Opened(Attempt.Route);
        }

        Read(in outcome);
        if (outcome.Status >= OutcomeStatus.InvalidArgument)
        {
            Fail(OperationErrors.FromOutcome(in outcome, IsRead, MayHaveHappened));
            return;
        }

        SessionNumber.End();
        _timer.End(in Request, failure: null);
        Succeed();
    }

    /// <summary>
    /// Ends it with an exception; application code never runs inside this call. The caller has won
    /// <see cref="TryEnd"/>.
    /// </summary>
    public void Fail(Exception failure)
    {
        SessionNumber.End();
        _timer.End(in Request, failure);
        SetFailure(failure);
    }

    protected abstract void Succeed();

    protected abstract void SetFailure(Exception failure);

    /// <summary>Makes it pending in a new generation.</summary>
    protected void Renew() =>
        Volatile.Write(ref _tag, ((Volatile.Read(ref _tag) / States) + 1) % (int.MaxValue / States) * States);

    /// <summary>Forgets the call, so that the pool keeps nothing of it alive.</summary>
    protected void Clear()
    {
        Request.Clear();
        _timer = default;
        Attempt.Clear();
        SessionNumber.Clear();
        IsCancelable = false;
        ClearAnswer();
    }
}

/// <summary>
/// A pooled operation with the generation that its holder means. A holder that comes too late, because the operation
/// has ended or serves another call already, sees that from <see cref="IsPending"/>. A value; any thread.
/// </summary>
/// <param name="Operation">The operation.</param>
/// <param name="Generation">The generation that the holder means.</param>
/// <param name="IsCancelable">True when a caller's token may end it at any moment; otherwise only its holder
/// does.</param>
internal readonly record struct OperationRef(Operation Operation, int Generation, bool IsCancelable)
{
    /// <summary>True while the operation has not ended.</summary>
    public bool IsPending => Operation.IsPending(Generation);

    /// <summary>Takes the right to end the operation; true for exactly one caller.</summary>
    public bool TryEnd() => Operation.TryEnd(Generation);

    /// <summary>
    /// Keeps the operation from ending for the few instructions in which its holder writes to it; false when it has
    /// ended. An operation without a token is safe with its holder and needs no interlocked step.
    /// </summary>
    public bool TryHold() => IsCancelable ? Operation.TryHold(Generation) : Operation.IsPending(Generation);

    /// <summary>Ends a successful <see cref="TryHold"/>.</summary>
    public void Release()
    {
        if (IsCancelable)
        {
            Operation.Release(Generation);
        }
    }

    /// <summary>
    /// The server no longer knows the session. Drops the number if no attempt can have been applied, so that the next
    /// attempt takes another one. Otherwise fails the operation, releases the hold and returns false.
    /// </summary>
    public bool TryRenumber()
    {
        Operation.SessionNumber.Forget();
        if (!Operation.MayHaveHappened && Operation.SessionNumber.IsOwn)
        {
            Operation.SessionNumber.Drop();
            return true;
        }

        return EndWith(OutcomeStatus.SessionUnknown);
    }

    /// <summary>
    /// A node has refused the client's credentials, of the given version. True: the operation is to be sent again with
    /// newer ones. Otherwise they were newer ones: fails the operation, releases the hold and returns false.
    /// </summary>
    public bool TryRenew(int credentials)
    {
        ref int refused = ref Operation.Attempt.RefusedCredentials;
        if (refused != 0 && credentials > refused)
        {
            return EndWith(OutcomeStatus.Unauthenticated);
        }

        refused = Math.Max(refused, credentials);
        return true;
    }

    private bool EndWith(OutcomeStatus status)
    {
        Release();
        if (TryEnd())
        {
            Operation.Complete(new Outcome(status));
        }

        return false;
    }
}

/// <summary>
/// An operation with the type of its result: the source behind the caller's <see cref="ValueTask{TResult}"/>. Returns
/// to the pool when the caller takes the result. Threading as <see cref="Operation"/>.
/// </summary>
internal sealed class Operation<TResult> : Operation, IValueTaskSource<TResult>, IThreadPoolWorkItem
    where TResult : struct, IOperationResult<TResult>
{
    private const int Running = 0;
    private const int Awaited = 1;
    private const int Ended = 2;

    // One idle operation per thread serves sequential callers; the shared stack serves the rest.
    [ThreadStatic]
    private static Operation<TResult>? s_own;

    private static readonly OperationPool<Operation<TResult>> s_shared = new(capacity: 16 * 1024);

    private ManualResetValueTaskSourceCore<bool> _core;
    private CancellationTokenRegistration _registration;
    private Exception? _failure;

    // Posting to a caller's context or scheduler runs application code. It can block or throw, and the thread that ends
    // operations serves all callers.
    private bool _isForeign;
    private int _phase;

    private Operation()
    {
    }

    /// <summary>Takes an operation for one call from the pool.</summary>
    public static Operation<TResult> Rent()
    {
        Operation<TResult>? operation = s_own;
        if (operation is not null)
        {
            s_own = null;
        }
        else
        {
            operation = s_shared.TryTake() ?? new Operation<TResult>();
        }

        operation.Renew();
        return operation;
    }

    /// <summary>
    /// The task that the caller awaits. From here on the token can end the operation at any moment, also before it is
    /// sent.
    /// </summary>
    /// <param name="isInline">The code after the await runs on the thread that ends the operation.</param>
    /// <param name="isHosted">The caller is an application, which may have a context or scheduler of its own.</param>
    /// <param name="ct">The caller's token.</param>
    public ValueTask<TResult> Start(bool isInline, bool isHosted, CancellationToken ct)
    {
        _phase = Running;
        _isForeign = isHosted
            && (SynchronizationContext.Current is not null || TaskScheduler.Current != TaskScheduler.Default);
        _core.RunContinuationsAsynchronously = !isInline;
        if (ct.CanBeCanceled)
        {
            IsCancelable = true;
            _registration = ct.UnsafeRegister(
                static (state, token) => ((Operation<TResult>)state!).OnCanceled(token), this);
        }

        return new ValueTask<TResult>(this, _core.Version);
    }

    /// <summary>Gives back an operation that is not run.</summary>
    public void Abandon() => Return();

    /// <inheritdoc/>
    protected override void SetFailure(Exception failure)
    {
        _core.RunContinuationsAsynchronously = true;
        _failure = failure;
        End();
    }

    /// <inheritdoc/>
    public TResult GetResult(short token)
    {
        if (_core.GetStatus(token) == ValueTaskSourceStatus.Pending)
        {
            throw new InvalidOperationException(
                "The result of an operation was taken before it had ended; await it, or turn it into a task first.");
        }

        try
        {
            _core.GetResult(token);
            return TResult.From(this);
        }
        finally
        {
            Return();
        }
    }

    /// <inheritdoc/>
    public ValueTaskSourceStatus GetStatus(short token) => _core.GetStatus(token);

    /// <inheritdoc/>
    public void OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
    {
        if (_isForeign && Interlocked.CompareExchange(ref _phase, Awaited, Running) == Ended)
        {
            // The result is being set. Once it is, the continuation is posted on this thread, the caller's own.
            SpinWait spin = default;
            while (_core.GetStatus(token) == ValueTaskSourceStatus.Pending)
            {
                spin.SpinOnce();
            }
        }

        _core.OnCompleted(continuation, state, token, flags);
    }

    /// <inheritdoc/>
    protected override void Succeed() => End();

    /// <inheritdoc/>
    void IThreadPoolWorkItem.Execute()
    {
        try
        {
            Signal();
        }
        catch (Exception)
        {
            // The caller's context accepts no more work, and the code after its await must not run elsewhere.
        }
    }

    private void End()
    {
        if (_isForeign && Interlocked.Exchange(ref _phase, Ended) == Awaited)
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
        else
        {
            Signal();
        }
    }

    private void Signal()
    {
        Exception? failure = _failure;
        _failure = null;
        if (failure is null)
        {
            _core.SetResult(true);
        }
        else
        {
            _core.SetException(failure);
        }
    }

    private void OnCanceled(CancellationToken token)
    {
        // The registration is disposed before the operation serves another call, so this is its generation.
        OperationRef reference = Reference;
        if (reference.TryEnd())
        {
            OperationOutcome outcome = Attempt.Stream?.Withdraw(this) ?? OperationOutcome.DidNotHappen;
            outcome = MayHaveHappened ? OperationOutcome.Unknown : outcome;
            Fail(new KahunaCanceledException(outcome, token));
        }
    }

    private void Return()
    {
        if (IsCancelable)
        {
            // Waits for a cancellation that is running on another thread.
            _registration.Dispose();
            _registration = default;
        }

        Clear();
        _core.Reset();
        if (s_own is null)
        {
            s_own = this;
        }
        else
        {
            s_shared.Give(this);
        }
    }
}

/// <summary>Measures and traces one operation while somebody listens. Part of an <see cref="Operation"/>.</summary>
internal struct OperationTimer
{
    private TimeProvider? _time;
    private long _begun;
    private bool _isOwn;

    /// <summary>The activity that nodes are told about; null: nobody traces the operation.</summary>
    public Activity? Traced { get; private set; }

    /// <summary>The operation begins.</summary>
    public void Begin(TimeProvider time, in OperationRequest request)
    {
        if (ClientMeter.IsTimed)
        {
            (_time, _begun) = (time, time.GetTimestamp());
        }

        Activity? caller = Activity.Current;
        if (caller is not null || ClientTraces.IsListened)
        {
            Traced = ClientTraces.Begin(in request, caller, out _isOwn);
        }
    }

    /// <summary>The operation is sent again.</summary>
    public readonly void Retried(in OperationRequest request, bool isMove)
    {
        ClientMeter.Retried(request.Kind, isMove);
        if (_isOwn)
        {
            ClientTraces.Retried(Traced!, isMove);
        }
    }

    /// <summary>The operation ends, once.</summary>
    /// <param name="request">The operation.</param>
    /// <param name="failure">Why it failed; null: it did not.</param>
    public void End(in OperationRequest request, Exception? failure)
    {
        if (_time is { } time)
        {
            _time = null;
            ClientMeter.Ended(in request, failure, time.GetElapsedTime(_begun));
        }

        if (_isOwn)
        {
            _isOwn = false;
            ClientTraces.End(Traced!, failure);
        }
    }
}

/// <summary>A bounded stack of idle objects; the garbage collector takes the surplus. Any thread.</summary>
internal sealed class OperationPool<T>(int capacity)
    where T : class
{
    private readonly Stack<T> _idle = new();
    private readonly Lock _lock = new();

    public T? TryTake()
    {
        lock (_lock)
        {
            return _idle.TryPop(out T? item) ? item : null;
        }
    }

    public void Give(T item)
    {
        lock (_lock)
        {
            if (_idle.Count < capacity)
            {
                _idle.Push(item);
            }
        }
    }
}
