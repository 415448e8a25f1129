using System.Threading.Tasks.Sources;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Protos;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Client.Connection;

/// <summary>
/// One Exchange stream from its handshake to its end. Callers encode requests into the open frame, and one writer sends
/// it, so that frames grow with the load and need no timer. The reader completes operations and corks the writer
/// meanwhile, so that their continuations fill one frame. Owned by a <see cref="NodeLink"/>. Any thread sends;
/// <see cref="RunAsync"/> runs once. The lock guards all mutable fields and is never held while foreign code runs.
/// </summary>
internal sealed class NodeStream
{
    private const string Stopped = "the node stopped";

    private readonly Lock _lock = new();
    private readonly IStreamOwner _owner;
    private readonly IFrameStream _bytes;
    private readonly ConnectionClock _clock;
    private readonly ConnectionSettings _settings;
    private readonly ReplyReader _replies;
    private readonly RequestQueue _requests;
    private readonly WakeSignal _wake;

    /// <summary>
    /// True when continuations run in the run's context; otherwise they run in no context and no scheduler.
    /// </summary>
    private readonly bool _captures;
    private bool _isWriting;
    private bool _isCorked;
    private bool _isDraining;
    private bool _isClosed;
    private string? _failure;

    public NodeStream(
        IStreamOwner owner,
        IFrameStream bytes,
        ConnectionClock clock,
        ConnectionSettings settings,
        SessionPool sessions,
        SynchronizationContext? context)
    {
        _owner = owner;
        _bytes = bytes;
        _clock = clock;
        _settings = settings;
        _requests = new RequestQueue(clock, settings.MaxInFlight, sessions);
        _wake = new WakeSignal(context);
        _captures = context is not null;
        _replies = new ReplyReader(this, owner);
    }

    /// <summary>
    /// True when answers are due and the node has been silent for longer than a healthy one. Written by
    /// <see cref="Scan"/>.
    /// </summary>
    public bool IsSuspect { get; private set; }

    /// <summary>The handshake is complete.</summary>
    public bool IsGreeted { get; set; }

    /// <summary>
    /// The node ended the stream because of who the client is; null when it did not. Valid after the end.
    /// </summary>
    public AccessRefusal? AccessRefusal { get; private set; }

    /// <summary>Operations that are sent or queued. Read without the lock, so it may be slightly outdated.</summary>
    public int Pending => _requests.InFlight + _requests.Waiting;

    /// <summary>
    /// True when the stream is full and its queue is too. Read without the lock, so it may be slightly outdated.
    /// </summary>
    public bool IsOverfull => _requests.InFlight >= _settings.MaxInFlight && _requests.Waiting >= _settings.MaxWaiting;

    /// <summary>The node says whether it takes traces.</summary>
    public void TakeTraces(bool isWanted)
    {
        lock (_lock)
        {
            if (isWanted)
            {
                _requests.Traces ??= new RequestTraces();
            }
            else
            {
                _requests.Traces?.Clear();
                _requests.Traces = null;
            }
        }
    }

    /// <summary>The stream accepts no further operations.</summary>
    public bool IsDraining => _isDraining;

    /// <summary>
    /// Sends an operation, or queues it while the stream is full. False when the stream accepts none; the operation is
    /// then still the caller's.
    /// </summary>
    public bool TrySend(OperationRef reference, long now)
    {
        Operation operation = reference.Operation;
        bool isAlone;
        lock (_lock)
        {
            if (_isClosed || _isDraining)
            {
                return false;
            }

            if (!reference.TryHold())
            {
                return true;
            }

            // From here on a cancellation finds this stream and waits for the lock before it looks for the request.
            operation.Attempt.RequestNumber = 0;
            operation.Attempt.Stream = this;
            reference.Release();
            if (!_requests.Add(reference, now) || _isWriting || (_isCorked && !_requests.IsOpenFull))
            {
                return true;
            }

            _isWriting = true;
            isAlone = _requests.InFlight == 1
                || operation.Request.EndsInline
                || (_requests.Awaiting == 1 && operation.Request.HoldMs == 0);
        }

        // A lone request has nothing to be batched with, and the caller's thread is the fastest writer. The client's
        // own requests, such as renewals, must not wait for a pool thread.
        _wake.Fire(isAlone);
        return true;
    }

    /// <summary>
    /// Withdraws the request of an operation that its caller has ended, if the writer has not taken it. Returns whether
    /// the operation may have happened.
    /// </summary>
    public OperationOutcome Withdraw(Operation operation)
    {
        lock (_lock)
        {
            return _requests.Withdraw(operation);
        }
    }

    /// <summary>
    /// Ends operations past their deadline and adds them to <paramref name="expired"/>, for the caller to fail. True
    /// while the stream has operations.
    /// </summary>
    public bool Scan(long now, long patience, List<ExpiredOperation> expired)
    {
        lock (_lock)
        {
            IsSuspect = _requests.IsOverdue(now, _replies.LastHeard, patience);
            return _requests.Expire(now, expired);
        }
    }

    /// <summary>
    /// Takes operations away for another route (<see cref="RequestQueue.TakeAway"/>); the caller sends them again.
    /// </summary>
    public void TakeAway(Func<Operation, bool> leaves, long takenBefore, List<OperationRef> moved)
    {
        lock (_lock)
        {
            _requests.TakeAway(leaves, takenBefore, moved);
        }
    }

    /// <summary>Stops accepting operations. Unsent ones go elsewhere; sent ones are still answered.</summary>
    public void Drain()
    {
        List<OperationRef> unsent = [];
        bool isOver;
        lock (_lock)
        {
            if (_isDraining || _isClosed)
            {
                return;
            }

            _isDraining = true;
            _requests.TakeUnsent(unsent);
            isOver = _requests.InFlight == 0;
        }

        Refuse(unsent);
        if (isOver)
        {
            Abort(Stopped);
        }
    }

    /// <summary>Ends the stream for the given reason.</summary>
    public void Abort(string reason)
    {
        _failure ??= reason;
        _bytes.Abort();
    }

    /// <summary>The node no longer knows who the client is: ends the stream.</summary>
    public void Refuse(AccessRefusal refusal)
    {
        AccessRefusal = refusal;
        Abort("the node no longer accepts the client's credentials");
    }

    /// <summary>Runs the stream from the handshake to its end. Never throws; returns why it ended.</summary>
    public async Task<string> RunAsync(DetachedLoops loops)
    {
        Task writing = Task.CompletedTask;
        try
        {
            await GreetAsync().ConfigureAwait(_captures);
            writing = loops.Start(WriteAsync);
            await ReadAsync().ConfigureAwait(_captures);
            _failure ??= await _bytes.EndReasonAsync().ConfigureAwait(_captures) ?? "the node ended the stream";
            AccessRefusal ??= AccessRefusal.Of(_bytes.EndStatus);
        }
        catch (Exception e)
        {
            _failure ??= DisconnectReasons.Of(e);
        }

        Close(_failure);
        await writing.ConfigureAwait(_captures);
        return _failure;
    }

    /// <summary>
    /// Starts a delivery: frees the slots of answered requests, admits queued ones and corks the writer.
    /// </summary>
    /// <param name="replies">The received replies; receives their operations, default where there is none.</param>
    /// <param name="now">When they arrived.</param>
    public void Resolve(Span<ReceivedReply> replies, long now)
    {
        lock (_lock)
        {
            _isCorked = true;
            _requests.Resolve(replies, now);
        }
    }

    /// <summary>Ends a delivery: the requests that the woken callers have sent meanwhile leave in one frame.</summary>
    public void Uncork()
    {
        bool wake = false;
        bool isOver;
        lock (_lock)
        {
            _isCorked = false;
            if (!_isWriting && _requests.OpenCount > 0 && !_isClosed)
            {
                _isWriting = true;
                wake = true;
            }

            isOver = _isDraining && _requests.InFlight == 0;
        }

        if (wake)
        {
            _wake.Fire(inline: true);
        }

        if (isOver)
        {
            Abort(Stopped);
        }
    }

    private async ValueTask GreetAsync()
    {
        ByteBuffer hello = ByteBuffer.Rent();
        try
        {
            Frame.Begin(hello, FrameKind.Hello, Limits.WireVersion);
            Frame.End(hello, 0);
            await _bytes.WriteAsync(hello.WrittenMemory).ConfigureAwait(_captures);
        }
        finally
        {
            hello.Return();
        }
    }

    private async Task ReadAsync()
    {
        using FrameReader reader = new();
        while (true)
        {
            int count = await _bytes.ReadAsync(reader.Space()).ConfigureAwait(_captures);
            if (count == 0)
            {
                return;
            }

            reader.Advance(count);
            _replies.Deliver(reader, _clock.Now);
        }
    }

    private async Task WriteAsync()
    {
        while (true)
        {
            await _wake.WaitAsync().ConfigureAwait(_captures);
            while (TakeFrame() is { } frame)
            {
                try
                {
                    await _bytes.WriteAsync(frame.WrittenMemory).ConfigureAwait(_captures);
                }
                catch (Exception e)
                {
                    // The reader sees the end as well and closes the stream; until then it accepts nothing.
                    Abort(DisconnectReasons.Of(e));
                    Retire();
                }
                finally
                {
                    frame.Return();
                }
            }

            lock (_lock)
            {
                if (_isClosed)
                {
                    return;
                }
            }
        }
    }

    private ByteBuffer? TakeFrame()
    {
        lock (_lock)
        {
            if (!_isClosed && _requests.OpenCount > 0 && (!_isCorked || _requests.IsOpenFull))
            {
                return _requests.Traces?.Take() ?? _requests.Take();
            }

            _isWriting = false;
            return null;
        }
    }

    private void Refuse(List<OperationRef> unsent)
    {
        foreach (OperationRef reference in unsent)
        {
            _owner.OnRefused(reference, new Refusal(OutcomeStatus.Unavailable));
        }
    }

    /// <summary>Stops accepting operations after a failed write; unsent ones go elsewhere.</summary>
    private void Retire()
    {
        List<OperationRef> unsent = [];
        lock (_lock)
        {
            _isDraining = true;
            _requests.TakeUnsent(unsent);
        }

        Refuse(unsent);
    }

    /// <summary>Sends every operation elsewhere under its session number.</summary>
    private void Close(string reason)
    {
        List<OperationRef> again = [];
        bool wake;
        lock (_lock)
        {
            _isClosed = true;
            _requests.TakeUnsent(again);
            _requests.TakeSent(again, _owner.NameLoss(reason));
            _requests.End();
            wake = !_isWriting;
            _isWriting = true;
        }

        if (wake)
        {
            _wake.Fire(inline: false);
        }

        _owner.OnEnded(this);
        Refuse(again);
    }
}

/// <summary>
/// Receives the events of a <see cref="NodeStream"/>. Called on the stream's loops, never under its lock.
/// </summary>
internal interface IStreamOwner
{
    /// <summary>The node sent its view of the cluster; the first one completes the handshake.</summary>
    void OnMap(NodeStream stream, DescribeClusterResponse map);

    /// <summary>The node is stopping; the stream must accept nothing new.</summary>
    void OnGoAway(NodeStream stream);

    /// <summary>The stream has ended; its operations are handed back after this call.</summary>
    void OnEnded(NodeStream stream);

    /// <summary>An operation must be sent again; <paramref name="refusal"/> says why.</summary>
    void OnRefused(OperationRef reference, in Refusal refusal);

    /// <summary>
    /// An operation that is refused as unauthenticated is to be sent again with renewed credentials
    /// (<see cref="OnRefused"/>).
    /// </summary>
    bool RenewsCredentials { get; }

    /// <summary>Names the node and why its stream ended, for an error message.</summary>
    string NameLoss(string reason);
}

/// <summary>Why an attempt is to be repeated. A value.</summary>
/// <param name="Status">What the node answered, or Unavailable when it can no longer answer.</param>
/// <param name="HintedNodeId">NotLeader: the leader that the node names; 0 for none.</param>
/// <param name="SlotMapVersion">NotLeader: the version of the node's map of slots; 0 when it named none.</param>
internal readonly record struct Refusal(OutcomeStatus Status, int HintedNodeId = 0, ulong SlotMapVersion = 0);

/// <summary>
/// Wakes one waiting loop without an allocation, any number of times. Exactly one <see cref="Fire"/> per wait; the
/// owner ensures that with a flag. Owned by a <see cref="NodeStream"/>.
/// </summary>
internal sealed class WakeSignal(SynchronizationContext? context) : IValueTaskSource, IThreadPoolWorkItem
{
    private ManualResetValueTaskSourceCore<bool> _core;

    /// <summary>Completes with the next <see cref="Fire"/>. One waiter at a time.</summary>
    public ValueTask WaitAsync() => new(this, _core.Version);

    /// <summary>
    /// Wakes the loop: on this thread before the call returns, or on the pool behind the work already queued there. The
    /// latter lets callers that were woken together fill one frame. A loop with a context always runs there.
    /// </summary>
    public void Fire(bool inline)
    {
        if (inline || context is not null)
        {
            _core.SetResult(true);
        }
        else
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
    }

    /// <inheritdoc/>
    void IThreadPoolWorkItem.Execute() => _core.SetResult(true);

    /// <inheritdoc/>
    void IValueTaskSource.GetResult(short token)
    {
        _core.GetResult(token);
        _core.Reset();
    }

    /// <inheritdoc/>
    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token) => _core.GetStatus(token);

    /// <inheritdoc/>
    void IValueTaskSource.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);
}
