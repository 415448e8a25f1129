using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Frames;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Connection;

/// <summary>
/// One Exchange stream for as long as it lasts. Callers encode their requests straight into the open frame; one writer
/// takes whatever has gathered and writes it, so that frames grow with the load and need no timer; the reader completes the
/// operations and, while it does, holds the writer back so that what they send next leaves in one frame.
/// Owned by a <see cref="NodeLink"/>. Any thread sends; <see cref="RunAsync"/> runs once. The lock guards all fields that
/// change and is never held while foreign code runs.
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

    /// <summary>Code after an await goes on in the run's context; otherwise in no context and no scheduler, whoever's thread it began on.</summary>
    private readonly bool _captures;
    private bool _isWriting;
    private bool _isCorked;
    private bool _isDraining;
    private bool _isClosed;
    private string? _failure;

    public NodeStream(IStreamOwner owner, IFrameStream bytes, ConnectionClock clock, ConnectionSettings settings, SessionPool sessions, SynchronizationContext? context)
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

    /// <summary>Answers are due, and nothing was heard for longer than a healthy node takes. Written by <see cref="Scan"/>.</summary>
    public bool IsSuspect { get; private set; }

    /// <summary>The handshake is complete.</summary>
    public bool IsGreeted { get; set; }

    /// <summary>No place is free, and as many operations wait for one as may. Read without the lock: it may be out of date by some.</summary>
    public bool IsOverfull => _requests.InFlight >= _settings.MaxInFlight && _requests.Waiting >= _settings.MaxWaiting;

    /// <summary>Takes nothing new.</summary>
    public bool IsDraining => _isDraining;

    /// <summary>
    /// Sends an operation, or queues it while the stream has no room. False when the stream takes nothing any more; the
    /// operation is then still the caller's.
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

            // From here on a cancellation finds this stream, and waits for the lock before it looks for the request.
            operation.RequestNumber = 0;
            operation.Stream = this;
            reference.Release();
            if (!_requests.Add(reference, now) || _isWriting || (_isCorked && !_requests.IsOpenFull))
            {
                return true;
            }

            _isWriting = true;
            isAlone = _requests.InFlight == 1 || operation.EndsInline || (_requests.Owed == 1 && operation.HoldMs == 0);
        }

        // With nothing else under way there is nothing to batch with, and the caller's own thread is the quickest writer. What the client does by itself, as renewals, must not wait for a thread of the pool.
        _wake.Fire(isAlone);
        return true;
    }

    /// <summary>
    /// For an operation that its caller has ended: takes its request back if that has not been handed to the writer. Says
    /// what the operation may have done.
    /// </summary>
    public OperationOutcome Withdraw(Operation operation)
    {
        lock (_lock)
        {
            return _requests.Withdraw(operation);
        }
    }

    /// <summary>
    /// Ends operations whose deadline has passed: adds them to <paramref name="expired"/>, and the caller fails them.
    /// True while operations are here.
    /// </summary>
    public bool Scan(long now, long patience, List<ExpiredOperation> expired)
    {
        lock (_lock)
        {
            IsSuspect = _requests.IsOverdue(now, _replies.LastHeard, patience);
            return _requests.Expire(now, expired);
        }
    }

    /// <summary>Takes away the operations that are to go another way (<see cref="RequestQueue.TakeAway"/>); the caller sends them again.</summary>
    public void TakeAway(Func<Operation, bool> leaves, long takenBefore, List<OperationRef> moved)
    {
        lock (_lock)
        {
            _requests.TakeAway(leaves, takenBefore, moved);
        }
    }

    /// <summary>Takes nothing new: what was not written is refused, so that it goes elsewhere; what was is still answered.</summary>
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

    /// <summary>Runs the stream to its end: greets, then reads and writes. Never throws; returns why it ended.</summary>
    public async Task<string> RunAsync(Loops loops)
    {
        Task writing = Task.CompletedTask;
        try
        {
            await GreetAsync().ConfigureAwait(_captures);
            writing = loops.Start(WriteAsync);
            await ReadAsync().ConfigureAwait(_captures);
            _failure ??= await _bytes.EndReasonAsync().ConfigureAwait(_captures) ?? "the node ended the stream";
        }
        catch (Exception e)
        {
            _failure ??= Reasons.Of(e);
        }

        Close(_failure);
        await writing.ConfigureAwait(_captures);
        return _failure;
    }

    /// <summary>Begins to deliver what was received: frees the places of answered requests, lets queued ones in, and corks the writer.</summary>
    /// <param name="replies">What came; receives the operations that are answered, default where there is none.</param>
    /// <param name="now">The moment it came.</param>
    public void Resolve(Span<ReceivedReply> replies, long now)
    {
        lock (_lock)
        {
            _isCorked = true;
            _requests.Resolve(replies, now);
        }
    }

    /// <summary>Everything received was delivered: what the woken callers have sent meanwhile leaves as one frame.</summary>
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
                    // The reader sees the end as well and closes the stream; until then nothing more is taken.
                    Abort(Reasons.Of(e));
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
                return _requests.Take();
            }

            _isWriting = false;
            return null;
        }
    }

    private void Refuse(List<OperationRef> unsent)
    {
        foreach (OperationRef reference in unsent)
        {
            _owner.OnRefused(reference, OutcomeStatus.Unavailable, hintedNodeId: 0);
        }
    }

    /// <summary>Stops taking operations; what was not written goes elsewhere.</summary>
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

    /// <summary>After the end: everything goes elsewhere, under the numbers that it has.</summary>
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
