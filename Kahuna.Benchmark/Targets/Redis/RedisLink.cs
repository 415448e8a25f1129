using System.Net.Sockets;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>
/// One socket to Redis with the requests that wait for its replies, in order. Any thread may send; one loop reads. Dead
/// after its first failure, which all its requests get.
/// </summary>
internal sealed class RedisLink
{
    private const int ReadBytes = 64 * 1024;

    private readonly Lock _gate = new();
    private readonly Socket _socket;
    private readonly long _timeout;
    private readonly Queue<Pending> _pending = new();
    private RespWriter _outgoing = new();
    private RespWriter _sending = new();
    private bool _isFlushing;
    private bool _isDispatching;
    private Exception? _failure;

    public RedisLink(Socket socket, TimeSpan timeout)
    {
        _socket = socket;
        _timeout = Ticks.From(timeout);
    }

    public void SendSet(RedisSession session, string key, ReadOnlySpan<byte> value)
    {
        bool mustFlush;
        lock (_gate)
        {
            ThrowIfBroken();
            _outgoing.WriteSet(key, value);
            mustFlush = Enqueue(new Pending(session, null, Ticks.Now + _timeout));
        }

        FlushIf(mustFlush);
    }

    public void SendGet(RedisSession session, string key)
    {
        bool mustFlush;
        lock (_gate)
        {
            ThrowIfBroken();
            _outgoing.WriteGet(key);
            mustFlush = Enqueue(new Pending(session, null, Ticks.Now + _timeout));
        }

        FlushIf(mustFlush);
    }

    /// <summary>Sends <c>EVAL</c> with the parameters that a script of a run may name.</summary>
    public void SendEval(RedisSession session, string script, in ScriptInput input)
    {
        bool mustFlush;
        lock (_gate)
        {
            ThrowIfBroken();
            _outgoing.WriteEval(script, input.Key ?? "", input.Value.GetValueOrDefault().Span, input.Number ?? 0);
            mustFlush = Enqueue(new Pending(session, null, Ticks.Now + _timeout));
        }

        FlushIf(mustFlush);
    }

    /// <summary>Sends <c>INFO server</c> and returns the text of its reply.</summary>
    public Task<byte[]> SendInfoAsync()
    {
        TaskCompletionSource<byte[]> completion = new(TaskCreationOptions.RunContinuationsAsynchronously);
        bool mustFlush;
        lock (_gate)
        {
            ThrowIfBroken();
            _outgoing.WriteInfo();
            mustFlush = Enqueue(new Pending(null, completion, Ticks.Now + _timeout));
        }

        FlushIf(mustFlush);
        return completion.Task;
    }

    /// <summary>Ends the requests whose deadline has passed; their replies, should they come, are skipped.</summary>
    public void Expire(long now)
    {
        List<Pending>? expired = null;
        lock (_gate)
        {
            if (_pending.Count == 0 || _pending.Peek().Deadline > now)
            {
                return;
            }

            // Deadlines are in the order of the queue, so that the expired are its head; turning the whole queue keeps
            // the order.
            for (int left = _pending.Count; left > 0; left--)
            {
                Pending pending = _pending.Dequeue();
                bool isExpired = pending.Deadline <= now && !pending.IsAbandoned;
                if (isExpired)
                {
                    (expired ??= []).Add(pending);
                }

                _pending.Enqueue(isExpired ? new Pending(null, null, pending.Deadline) : pending);
            }
        }

        foreach (Pending pending in expired ?? [])
        {
            pending.Fail(new TimeoutException("No reply within the timeout."));
        }
    }

    /// <summary>Reads replies until the link breaks.</summary>
    public async Task ReadAsync()
    {
        byte[] buffer = new byte[ReadBytes];
        int filled = 0;
        try
        {
            while (true)
            {
                if (filled == buffer.Length)
                {
                    Array.Resize(ref buffer, buffer.Length * 2);
                }

                int read = await _socket.ReceiveAsync(buffer.AsMemory(filled), SocketFlags.None).ConfigureAwait(false);
                if (read == 0)
                {
                    throw new IOException("The server closed the connection.");
                }

                filled += read;
                int used = Dispatch(buffer.AsSpan(0, filled));
                buffer.AsSpan(used, filled - used).CopyTo(buffer);
                filled -= used;
            }
        }
        catch (Exception failure)
        {
            Break(failure);
        }
    }

    /// <summary>Ends the link; all its requests fail with <paramref name="failure"/>.</summary>
    public void Break(Exception failure)
    {
        Pending[] pending;
        lock (_gate)
        {
            if (_failure is not null)
            {
                return;
            }

            _failure = failure;
            pending = [.. _pending];
            _pending.Clear();
        }

        _socket.Dispose();
        foreach (Pending request in pending)
        {
            request.Fail(new IOException($"The connection broke: {failure.Message}"));
        }
    }

    /// <summary>
    /// Completes a request per whole reply in <paramref name="bytes"/>; returns how many bytes those were.
    /// </summary>
    private int Dispatch(ReadOnlySpan<byte> bytes)
    {
        lock (_gate)
        {
            _isDispatching = true;
        }

        int used = 0;
        while (RespReply.TryRead(bytes[used..], out RespReply reply, out int length))
        {
            used += length;
            Pending pending;
            lock (_gate)
            {
                if (!_pending.TryDequeue(out pending))
                {
                    throw new IOException("The server sent a reply that nobody asked for.");
                }
            }

            // The worker goes on inside of this call; what it sends next waits for the flush below.
            pending.Complete(reply);
        }

        bool mustFlush;
        lock (_gate)
        {
            _isDispatching = false;
            mustFlush = _outgoing.Length > 0 && !_isFlushing;
            _isFlushing |= mustFlush;
        }

        FlushIf(mustFlush);
        return used;
    }

    private bool Enqueue(Pending pending)
    {
        _pending.Enqueue(pending);
        if (_isFlushing || _isDispatching)
        {
            return false;
        }

        _isFlushing = true;
        return true;
    }

    private void FlushIf(bool mustFlush)
    {
        if (mustFlush)
        {
            _ = FlushAsync();
        }
    }

    private async Task FlushAsync()
    {
        try
        {
            while (true)
            {
                lock (_gate)
                {
                    if (_outgoing.Length == 0 || _failure is not null)
                    {
                        _isFlushing = false;
                        return;
                    }

                    (_outgoing, _sending) = (_sending, _outgoing);
                }

                ReadOnlyMemory<byte> rest = _sending.Written;
                while (!rest.IsEmpty)
                {
                    rest = rest[await _socket.SendAsync(rest, SocketFlags.None).ConfigureAwait(false)..];
                }

                _sending.Clear();
            }
        }
        catch (Exception failure) when (failure is SocketException or ObjectDisposedException)
        {
            Break(failure);
        }
    }

    private void ThrowIfBroken()
    {
        if (_failure is not null)
        {
            throw new IOException($"The connection is broken: {_failure.Message}");
        }
    }

    /// <summary>
    /// A request that waits for its reply: a worker's, or the one that asks for the version. Neither once it has timed
    /// out.
    /// </summary>
    private readonly record struct Pending(RedisSession? Session, TaskCompletionSource<byte[]>? Text, long Deadline)
    {
        public bool IsAbandoned => Session is null && Text is null;

        public void Complete(in RespReply reply)
        {
            if (reply.Kind == RespKind.Error)
            {
                Fail(new RequestFailedException(reply.ToText()));
                return;
            }

            Session?.Complete(reply.Kind == RespKind.Nil ? OperationResult.Miss : OperationResult.Success);
            Text?.TrySetResult(reply.Bytes.ToArray());
        }

        public void Fail(Exception failure)
        {
            Session?.Fail(failure);
            Text?.TrySetException(failure);
        }
    }
}
