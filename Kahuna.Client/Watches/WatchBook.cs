using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// All watches of a client with what each has had, whatever stream carries them: it makes the requests of a stream and
/// takes its frames. What a watch has had already is never handed on again, and a watch goes on behind it on the next
/// stream. Runs no code of its own and looks at no clock; the lock guards everything. Any thread.
/// </summary>
internal sealed class WatchBook
{
    private readonly Lock _lock = new();
    private readonly Dictionary<uint, ServerWatch> _watches = [];
    private readonly Dictionary<WatchFilter, ServerWatch> _byFilter = [];
    private readonly Queue<ServerWatch> _toBegin = [];
    private readonly Queue<uint> _toEnd = [];
    private readonly List<ServerWatch> _refused = [];

    /// <summary>Begun, or ended: who waits for that is told when the lock is free.</summary>
    private readonly Queue<WatchQueue> _settled = [];
    private readonly WatchIntake _intake;
    private uint _lastId;

    public WatchBook() => _intake = new WatchIntake(_watches, this);

    /// <summary>
    /// Another node may have what this one has lost: <see cref="Deliver"/> says so before it tells a loss. Set by the
    /// owner of the stream.
    /// </summary>
    public bool TriesOthers
    {
        set
        {
            lock (_lock)
            {
                _intake.TriesOthers = value;
            }
        }
    }

    /// <summary>Watches at the node; those of equal filters may share one.</summary>
    public int Count
    {
        get
        {
            lock (_lock)
            {
                return _watches.Count;
            }
        }
    }

    /// <summary>There are requests to be sent.</summary>
    public bool HasRequests
    {
        get
        {
            lock (_lock)
            {
                return _toBegin.Count > 0 || _toEnd.Count > 0;
            }
        }
    }

    // ---- Watches of the client

    /// <summary>Begins a watch.</summary>
    /// <param name="queue">Takes the events.</param>
    /// <param name="filter">What it is about.</param>
    /// <param name="from">Changes behind these points are for it.</param>
    /// <param name="origin">How the points came about.</param>
    public void Begin(WatchQueue queue, in WatchFilter filter, WatchPosition from, WatchOrigin origin)
    {
        lock (_lock)
        {
            if (!TryJoin(queue, in filter, from, origin == WatchOrigin.Now))
            {
                ServerWatch watch = new(++_lastId, filter, from) { MayBeElsewhere = origin != WatchOrigin.Lagging };
                queue.Start = null;
                watch.Add(queue);
                _watches.Add(watch.Id, watch);
                _byFilter.TryAdd(filter, watch);
                _toBegin.Enqueue(watch);
            }

            _intake.Report(queue);
        }

        Settle();
    }

    /// <summary>Ends a watch: its queue gets nothing from here on.</summary>
    public void End(WatchQueue queue)
    {
        lock (_lock)
        {
            Leave(queue);

            // A state that was not complete is read again: its end is not the end of the next one.
            queue.Target = null;
        }
    }

    /// <summary>Ends all watches.</summary>
    public void EndAll(Func<Exception> reason)
    {
        lock (_lock)
        {
            foreach (ServerWatch watch in _watches.Values.ToArray())
            {
                Fail(watch, reason);
            }
        }

        Settle();
    }

    /// <summary>
    /// Tells a queue <see cref="WatchEventKind.CurrentEnd"/> when everything up to a position has been added to it.
    /// </summary>
    public void TellWhenAt(WatchQueue queue, WatchPosition target)
    {
        lock (_lock)
        {
            _intake.TellWhenAt(queue, target);
        }
    }

    // ---- One stream

    /// <summary>
    /// A stream to a node begins: all watches continue there. Watches of another cluster end.
    /// </summary>
    public void OnStreamBegan(ulong cluster)
    {
        lock (_lock)
        {
            foreach (ServerWatch watch in _watches.Values.ToArray())
            {
                if (watch.Points.Cluster != cluster)
                {
                    Fail(watch, OperationErrors.PositionOfAnotherCluster);
                }
            }
        }

        Settle();
    }

    /// <summary>The stream has ended: what was under way on it comes again on the next one.</summary>
    public void OnStreamEnded()
    {
        lock (_lock)
        {
            _toBegin.Clear();
            _toEnd.Clear();
            _refused.Clear();
            foreach (ServerWatch watch in _watches.Values)
            {
                watch.Points = _intake.Level(watch.Filter.Durability).Of(watch);
                watch.Restart();
                _toBegin.Enqueue(watch);
            }

            _intake.Restart();
        }
    }

    /// <summary>Appends requests up to about the size of a frame. Returns how many.</summary>
    public int TakeRequests(ByteBuffer frame)
    {
        int count = 0;
        lock (_lock)
        {
            while (frame.Length < Limits.FrameBytesTarget && _toEnd.TryDequeue(out uint ended))
            {
                new WatchRequest { Operation = WatchOperation.End, Id = ended }.Write(frame);
                count++;
            }

            while (frame.Length < Limits.FrameBytesTarget && _toBegin.TryDequeue(out ServerWatch? watch))
            {
                if (!watch.IsOver)
                {
                    WriteBegin(frame, watch);
                    count++;
                }
            }

            if (_toBegin.Count == 0 && _toBegin.Capacity > 1_024)
            {
                _toBegin.TrimExcess();
            }
        }

        return count;
    }

    /// <summary>Watches that the node refused for the time being are asked for again.</summary>
    public void AskAgain()
    {
        lock (_lock)
        {
            _refused.ForEach(_toBegin.Enqueue);
            _refused.Clear();
        }
    }

    /// <summary>
    /// Takes a frame of the node. False: the node has lost changes that another one may have, and nothing of the loss
    /// was told: the owner tries another node.
    /// </summary>
    /// <exception cref="InvalidDataException">The node violated the protocol.</exception>
    public bool Deliver(FrameKind kind, ReadOnlySpan<byte> body, int count, WatchMoment now)
    {
        bool isTaken;
        lock (_lock)
        {
            isTaken = _intake.Take(kind, body, count, now);
        }

        Settle();
        return isTaken;
    }

    /// <summary>Since when the node's view is complete, as a timestamp; null: unknown.</summary>
    public long? OldestAsOf()
    {
        lock (_lock)
        {
            return _intake.OldestAsOf();
        }
    }

    // ---- Called by the intake, under the lock

    /// <summary>A node has begun a watch, or the watch of a queue has ended.</summary>
    public void OnSettled(WatchQueue queue) => _settled.Enqueue(queue);

    /// <summary>A refusal that passes is asked for again later; any other one ends the watch.</summary>
    public void Refuse(ServerWatch watch, OutcomeStatus status, string text)
    {
        watch.IsSent = false;
        if (OutcomeStatuses.RetryOf(status) != RetryRule.Ends)
        {
            _refused.Add(watch);
            return;
        }

        Fail(watch, () => OperationErrors.WatchRefused(status, text));
    }

    private void Fail(ServerWatch watch, Func<Exception> reason)
    {
        for (int i = watch.Count - 1; i >= 0; i--)
        {
            WatchQueue queue = watch[i];
            queue.End(reason());
            Leave(queue);
            _settled.Enqueue(queue);
        }
    }

    /// <summary>A queue gets nothing from here on.</summary>
    public void Leave(WatchQueue queue)
    {
        if (queue.Source is not { } watch)
        {
            return;
        }

        watch.Remove(queue);
        if (watch.Count > 0)
        {
            return;
        }

        watch.IsOver = true;
        _watches.Remove(watch.Id);
        if (_byFilter.GetValueOrDefault(watch.Filter) == watch)
        {
            _byFilter.Remove(watch.Filter);
        }

        if (watch.IsSent)
        {
            _toEnd.Enqueue(watch.Id);
        }
    }

    /// <summary>Joins a watch of the same filter if the node has told it nothing that the queue must have.</summary>
    private bool TryJoin(WatchQueue queue, in WatchFilter filter, WatchPosition from, bool isNow)
    {
        if (!_byFilter.TryGetValue(filter, out ServerWatch? known))
        {
            return false;
        }

        WatchPosition had = _intake.Level(filter.Durability).Of(known);
        if (!isNow && !from.Covers(had))
        {
            return false;
        }

        WatchPosition start = WatchPosition.Later(from, had);
        queue.Start = had.Covers(start) ? null : start;
        known.Add(queue);
        if (known.IsBegun)
        {
            _settled.Enqueue(queue);
        }

        return true;
    }

    /// <summary>Tells who waits for the beginning of its watch, without the lock: foreign code may follow.</summary>
    private void Settle()
    {
        while (true)
        {
            WatchQueue? queue;
            lock (_lock)
            {
                if (!_settled.TryDequeue(out queue))
                {
                    return;
                }
            }

            queue.OnBegun();
        }
    }

    private void WriteBegin(ByteBuffer frame, ServerWatch watch)
    {
        watch.IsSent = true;
        ReadOnlySpan<ChangePoint> points = watch.Points.Points;
        byte[] encoded = BufferArrays.Rent(points.Length * ChangePoint.Bytes);
        for (int i = 0; i < points.Length; i++)
        {
            points[i].Write(encoded.AsSpan(i * ChangePoint.Bytes));
        }

        new WatchRequest
        {
            Operation = WatchOperation.Begin,
            Durability = watch.Filter.Durability,
            Scope = watch.Filter.Scope,
            Flags = watch.Filter.WithValues ? WatchFlags.WithValues : WatchFlags.None,
            Id = watch.Id,
            Points = encoded.AsSpan(0, points.Length * ChangePoint.Bytes),
            Name = watch.Filter.Name,
        }.Write(frame);
        BufferArrays.Return(encoded);
    }
}

/// <summary>How the points came about at which a watch begins. Not stored.</summary>
internal enum WatchOrigin
{
    /// <summary>The caller has named them: exactly the changes behind them are for it.</summary>
    Given,

    /// <summary>The caller asked for what comes from now on; they are of a moment since.</summary>
    Now,

    /// <summary>The consumer was slow, and goes on.</summary>
    Lagging,
}

/// <summary>A moment of the client's clock. A value.</summary>
/// <param name="Timestamp">The timestamp.</param>
/// <param name="PerMs">Timestamps in a millisecond.</param>
internal readonly record struct WatchMoment(long Timestamp, long PerMs);
