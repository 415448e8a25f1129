using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Frame = Kahuna.Wire.Frames.Frame;

namespace Kahuna.Client.Watches;

/// <summary>
/// One stream of watches from its handshake to its end: sends what the book requests, and gives it what comes. Owned by
/// a <see cref="WatchLink"/>; <see cref="RunAsync"/> runs once, any thread wakes and aborts.
/// </summary>
internal sealed class WatchStream
{
    private readonly Lock _lock = new();
    private readonly IWatchStreamOwner _owner;
    private readonly IFrameStream _bytes;
    private readonly WatchBook _book;
    private readonly ConnectionClock _clock;
    private readonly WakeSignal _wake;
    private readonly bool _captures;
    private readonly WatchMoment _scale;
    private string? _failure;
    private long _lastHeard;
    private bool _isGreeted;
    private bool _isWriting;
    private bool _isClosed;

    public WatchStream(
        IWatchStreamOwner owner,
        Uri endpoint,
        IFrameStream bytes,
        WatchBook book,
        ConnectionClock clock,
        SynchronizationContext? context)
    {
        _owner = owner;
        Endpoint = endpoint;
        _bytes = bytes;
        _book = book;
        _clock = clock;
        _wake = new WakeSignal(context);
        _captures = context is not null;
        _scale = new WatchMoment(0, clock.OfMs(1));
        OpenedAt = _lastHeard = clock.Now;
    }

    /// <summary>The node.</summary>
    public Uri Endpoint { get; }

    /// <summary>When it was opened.</summary>
    public long OpenedAt { get; }

    /// <summary>
    /// The node ended the stream because of who the client is; null when it did not. Valid after the end.
    /// </summary>
    public AccessRefusal? AccessRefusal { get; private set; }

    /// <summary>When something came last.</summary>
    public long LastHeard => Volatile.Read(ref _lastHeard);

    /// <summary>Ends the stream for the given reason.</summary>
    public void Abort(string reason)
    {
        _failure ??= reason;
        _bytes.Abort();
    }

    /// <summary>The book may have requests.</summary>
    public void Wake()
    {
        if (_book.HasRequests)
        {
            WakeWriter();
        }
    }

    /// <summary>Runs the stream to its end. Never throws; returns why it ended.</summary>
    public async Task<string> RunAsync(DetachedLoops loops)
    {
        Task writing = Task.CompletedTask;
        try
        {
            await GreetAsync().ConfigureAwait(_captures);
            writing = loops.Start(WriteAsync);
            Wake();
            await ReadAsync().ConfigureAwait(_captures);
            _failure ??= await _bytes.EndReasonAsync().ConfigureAwait(_captures) ?? "the node ended the stream";
            AccessRefusal = AccessRefusal.Of(_bytes.EndStatus);
        }
        catch (Exception e)
        {
            _failure ??= DisconnectReasons.Of(e);
        }

        lock (_lock)
        {
            _isClosed = true;
        }

        WakeWriter();
        _bytes.Abort();
        await writing.ConfigureAwait(_captures);
        return _failure;
    }

    private void WakeWriter()
    {
        lock (_lock)
        {
            if (_isWriting)
            {
                return;
            }

            _isWriting = true;
        }

        _wake.Fire(inline: false);
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
            long now = _clock.Now;
            Volatile.Write(ref _lastHeard, now);
            while (reader.TryTake(out ReadOnlySpan<byte> payload))
            {
                if (!TryDeliver(payload, _scale with { Timestamp = now }))
                {
                    return;
                }
            }
        }
    }

    /// <summary>Delivers a frame. False: the stream is to be left.</summary>
    private bool TryDeliver(ReadOnlySpan<byte> payload, WatchMoment now)
    {
        if (!Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out int count))
        {
            throw new InvalidDataException("a frame is shorter than its header");
        }

        if (!_isGreeted)
        {
            if (kind != FrameKind.Hello || version != Limits.WireVersion)
            {
                throw new InvalidDataException(kind == FrameKind.Hello
                    ? FormattableString.Invariant(
                        $"the node speaks wire version {version}, this client {Limits.WireVersion}")
                    : "the node did not send its hello first");
            }

            _isGreeted = true;
            return true;
        }

        if (kind == FrameKind.GoAway)
        {
            _failure ??= "the node stops";
            return false;
        }

        if (!_book.Deliver(kind, payload[Frame.HeaderBytes..], count, now))
        {
            _failure ??= "the node has lost changes that another one may have";
            _owner.OnLacking(this);
            return false;
        }

        return true;
    }

    private async Task WriteAsync()
    {
        bool isBroken = false;
        while (true)
        {
            await _wake.WaitAsync().ConfigureAwait(_captures);
            try
            {
                await WriteRequestsAsync().ConfigureAwait(_captures);
            }
            catch (Exception e)
            {
                // The reader sees the end as well, and closes the stream.
                isBroken = true;
                Abort(DisconnectReasons.Of(e));
            }

            lock (_lock)
            {
                if (_isClosed)
                {
                    return;
                }

                _isWriting = false;
            }

            if (!isBroken)
            {
                // For a request that came after the last look and found the loop at work.
                Wake();
            }
        }
    }

    private async Task WriteRequestsAsync()
    {
        ByteBuffer frame = ByteBuffer.Rent();
        try
        {
            while (true)
            {
                frame.Length = 0;
                Frame.Begin(frame, FrameKind.WatchRequests);
                int count = _book.TakeRequests(frame);
                if (count == 0)
                {
                    return;
                }

                Frame.End(frame, count);
                await _bytes.WriteAsync(frame.WrittenMemory).ConfigureAwait(_captures);
            }
        }
        finally
        {
            frame.Return();
        }
    }
}

/// <summary>Is told what a <see cref="WatchStream"/> has found. Called by its reader.</summary>
internal interface IWatchStreamOwner
{
    /// <summary>The node has lost changes that a watch needs.</summary>
    void OnLacking(WatchStream stream);
}
