using System.Threading.Tasks.Sources;
using Kahuna.Client.Outcomes;

namespace Kahuna.Client.Connection;

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
