using Kahuna.Server.Primitives;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Moves what a reader has to say to one caller, as fast as the caller reads it. It runs in steps: one at a time, by
/// the hub's workers, each until there is nothing to say or until it must wait for the caller. Any thread wakes it.
/// </summary>
internal abstract class WatchPump
{
    /// <summary>Bytes to write before a flush.</summary>
    private const int FlushBytes = Limits.FrameBytesTarget;

    private readonly WatchHub _hub;
    private readonly WatchNews _news;
    private readonly WatchReader _reader;
    private readonly WatchAccess? _access;
    private IDisposable? _rights;
    private readonly Action _onSent;
    private readonly WatchPace _pace = new();
    private readonly TaskCompletionSource _idle = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private volatile TaskCompletionSource? _said;
    private ValueTask<bool> _sending;
    private int _wakes;
    private int _isProgressDue;
    private int _waits;
    private int _sendingBytes;
    private long _blockedAt;
    private volatile bool _hasEnded;

    /// <summary>A stream of a node. <see cref="Join"/> begins it.</summary>
    /// <param name="hub">The node's watches.</param>
    /// <param name="access">What may be watched; null: everything.</param>
    protected WatchPump(WatchHub hub, WatchAccess? access)
    {
        _access = access;
        _hub = hub;
        _news = new WatchNews(hub.Dispatcher, WakeByNews);
        _reader = hub.Open(_news, access);
        _onSent = OnSent;
        Part = hub.NextPart();
    }

    /// <summary>When in each second it is asked for its progress.</summary>
    public int Part { get; }

    /// <summary>The stream has ended by itself or by <see cref="EndAsync"/>.</summary>
    protected bool HasEnded => _hasEnded;

    /// <summary>The next changes wait a moment for more of them.</summary>
    protected bool WaitsForMore => _pace.IsSlow;

    /// <summary>Since when it waits for its caller, who does not read; null: it does not wait.</summary>
    public NodeTime? BlockedAt => Volatile.Read(ref _blockedAt) is var ms and not 0 ? new NodeTime(ms) : null;

    /// <summary>Begins.</summary>
    public void Join()
    {
        _rights = _access?.State.Watch(Wake);
        _hub.Join(this, _news);
    }

    /// <summary>The caller is to be told how far it is.</summary>
    public void RequestProgress()
    {
        Volatile.Write(ref _isProgressDue, 1);
        Wake();
    }

    /// <summary>There may be something to do.</summary>
    public void Wake()
    {
        if (Interlocked.Increment(ref _wakes) == 1)
        {
            _hub.Enqueue(this);
        }
    }

    /// <summary>What waited a moment for more changes waits no longer.</summary>
    public void EndWait()
    {
        Volatile.Write(ref _waits, 0);
        Wake();
    }

    /// <summary>One step; of a worker only.</summary>
    public void Run()
    {
        int seen = Volatile.Read(ref _wakes);
        try
        {
            Step step = _hasEnded ? Step.Ended : Advance();
            if (step is Step.Idle or Step.Ended)
            {
                _said?.TrySetResult();
            }

            switch (step)
            {
                case Step.Idle when Interlocked.Add(ref _wakes, -seen) != 0:
                case Step.Again:
                    _hub.Enqueue(this);
                    break;
                case Step.Sending:
                    Volatile.Write(ref _blockedAt, _hub.Now.Ms);
                    _sending.GetAwaiter().UnsafeOnCompleted(_onSent);
                    break;
                case Step.Ended:
                    _idle.TrySetResult();
                    break;
            }
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            Fail(error);
        }
    }

    /// <summary>Waits until everything is said that there is to say now.</summary>
    public Task SayAllAsync()
    {
        _said = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        Wake();
        return _said.Task;
    }

    /// <summary>Ends the stream and waits for its last step.</summary>
    public async Task EndAsync()
    {
        End();
        await _idle.Task.ConfigureAwait(false);
        _rights?.Dispose();
        _hub.Leave(this, _news);
        _reader.Dispose();
    }

    /// <summary>Ends the stream: no further step is made.</summary>
    protected void End()
    {
        _hasEnded = true;
        CancelSending();
        Wake();
    }

    /// <summary>
    /// Takes what the caller asks for and lets the reader know, as far as the reader may take it. False: the stream
    /// must end.
    /// </summary>
    protected abstract bool TakeRequests(WatchReader reader);

    /// <summary>Writes what is not of the reader. Returns how many bytes.</summary>
    protected abstract int WriteOwn();

    /// <summary>Writes a frame of the reader, without waiting.</summary>
    protected abstract void Write(ByteBuffer frame);

    /// <summary>Sends what was written. The result is false when the caller is gone.</summary>
    protected abstract ValueTask<bool> SendAsync();

    /// <summary>Cancels a send that waits for the caller.</summary>
    protected abstract void CancelSending();

    /// <summary>The step has thrown: the stream ends.</summary>
    protected abstract void OnFailed(Exception error);

    private void WakeByNews()
    {
        if (!WaitsForMore)
        {
            Wake();
        }
        else if (Interlocked.Exchange(ref _waits, 1) == 0)
        {
            _hub.WaitForMore(this);
        }
    }

    private Step Advance()
    {
        if (Interlocked.Exchange(ref _isProgressDue, 0) != 0)
        {
            _reader.RequestProgress();
        }

        int bytes = WriteOwn();
        WatchFill fill = WatchFill.Nothing;
        bool mayTell = MayTell();
        bool isFull = !_hub.Room.HasForRead(0, FlushBytes);
        do
        {
            if (!mayTell || !TakeRequests(_reader))
            {
                break;
            }

            if (isFull)
            {
                // The node has too much that is not read. The next progress tries again.
                break;
            }

            ByteBuffer frame = ByteBuffer.Rent();
            try
            {
                NodeTime now = _hub.Now;
                fill = _reader.Fill(frame, now);
                if (fill == WatchFill.Frame)
                {
                    if (_reader.Changes > 0)
                    {
                        _pace.Count(now, _reader.Changes);
                    }

                    bytes += frame.Length;
                    Write(frame);
                }
            }
            finally
            {
                frame.Return();
            }
        }
        while (fill == WatchFill.Frame && bytes < FlushBytes && !_hasEnded);
        if (bytes == 0)
        {
            return fill == WatchFill.Nothing ? Step.Idle : Step.Again;
        }

        _sendingBytes = bytes;
        _hub.Room.Add(bytes);
        _sending = SendAsync();
        return _sending.IsCompleted ? Sent(fill != WatchFill.Nothing) : Step.Sending;
    }

    /// <summary>The caller's rights are known, and what it may no longer watch has ended.</summary>
    private bool MayTell()
    {
        if (_access is null)
        {
            return true;
        }

        bool mayTell = _access.Look();
        if (mayTell && _access.HasChanged)
        {
            _reader.EndForbidden();
        }

        return mayTell;
    }

    private void OnSent()
    {
        try
        {
            Sent(isLeft: true);
            _hub.Enqueue(this);
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            Fail(error);
        }
    }

    private Step Sent(bool isLeft)
    {
        _hub.Room.Add(-_sendingBytes);
        _sendingBytes = 0;
        Volatile.Write(ref _blockedAt, 0);
        if (!_sending.GetAwaiter().GetResult())
        {
            _hasEnded = true;
        }

        return isLeft || _hasEnded ? Step.Again : Step.Idle;
    }

    private void Fail(Exception error)
    {
        _hub.Room.Add(-_sendingBytes);
        _sendingBytes = 0;
        _hasEnded = true;
        OnFailed(error);
        _hub.Enqueue(this);
    }

    /// <summary>What comes after a step.</summary>
    private enum Step
    {
        /// <summary>Nothing until it is woken.</summary>
        Idle,

        /// <summary>The next step, when it is its turn.</summary>
        Again,

        /// <summary>The next step, when the caller has taken what was sent.</summary>
        Sending,

        /// <summary>The stream has ended.</summary>
        Ended,
    }
}
