using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Reads each change of a node once, and wakes the streams that it concerns. It is attached to the change logs only
/// while something is watched. A group's loop reads at the end of a turn, or one work item of the pool; the rest from
/// any thread.
/// </summary>
internal sealed class WatchDispatcher : IThreadPoolWorkItem
{
    private const int ChunkBytes = 64 << 10;

    /// <summary>What the loop's thread reads at most in a turn: some hundred changes of small values.</summary>
    private const int ChunkHereBytes = 64 << 10;

    /// <summary>Chunks of a group before the others have their turn.</summary>
    private const int ChunksMax = 16;

    private readonly Group?[] _groups;
    private readonly Action<IThreadPoolWorkItem> _queue;
    private readonly Lock _lock = new();
    private readonly FilterIndex<object> _persistent = new();
    private readonly FilterIndex<object> _ephemeral = new();
    private readonly HashSet<WatchNews> _streams = [];
    private readonly List<Filter<object>> _matches = [];

    /// <summary>What was read last. Kept while something is watched: each turn of a loop needs it.</summary>
    private ByteBuffer? _records;
    private int _wakes;

    /// <summary>A dispatcher of a node's changes.</summary>
    /// <param name="logs">The changes.</param>
    /// <param name="queue">Runs a work item soon; null: in the pool.</param>
    public WatchDispatcher(ChangeLogs logs, Action<IThreadPoolWorkItem>? queue = null)
    {
        _queue = queue ?? (static item => ThreadPool.UnsafeQueueUserWorkItem(item, preferLocal: false));
        _groups = new Group?[logs.Count];
        for (int i = 0; i < _groups.Length; i++)
        {
            _groups[i] = logs[i] is { } log ? new Group(this, log, i) : null;
        }
    }

    /// <summary>Number of group indexes.</summary>
    public int Groups => _groups.Length;

    /// <summary>A stream begins.</summary>
    public void Join(WatchNews stream)
    {
        lock (_lock)
        {
            _streams.Add(stream);
        }
    }

    /// <summary>A stream without watches ends.</summary>
    public void Leave(WatchNews stream)
    {
        lock (_lock)
        {
            _streams.Remove(stream);
        }
    }

    /// <summary>A stream watches these keys from now on.</summary>
    public void Add(Durability durability, WatchScope scope, byte[] name, WatchNews stream)
    {
        lock (_lock)
        {
            if (_persistent.Count + _ephemeral.Count == 0)
            {
                Attach();
            }

            FilterIndex<object> filters = FiltersOf(durability == Durability.Ephemeral);
            if (filters.Find(scope, name) is not { } filter)
            {
                filters.Add(scope, name, stream);
            }
            else if (filter.Value is HashSet<WatchNews> streams)
            {
                streams.Add(stream);
            }
            else
            {
                filter.Value = new HashSet<WatchNews> { (WatchNews)filter.Value, stream };
            }
        }
    }

    /// <summary>A stream no longer watches these keys.</summary>
    public void Remove(Durability durability, WatchScope scope, byte[] name, WatchNews stream)
    {
        lock (_lock)
        {
            FilterIndex<object> filters = FiltersOf(durability == Durability.Ephemeral);
            Filter<object> filter = filters.Find(scope, name)!;
            if (filter.Value is HashSet<WatchNews> streams && streams.Remove(stream) && streams.Count > 0)
            {
                return;
            }

            filters.Remove(filter);
            if (_persistent.Count + _ephemeral.Count == 0)
            {
                Detach();
            }
        }
    }

    /// <summary>Every stream was told what concerns it up to here.</summary>
    public ChangeCursor DispatchedOf(int groupIndex) => _groups[groupIndex]!.Dispatched;

    /// <inheritdoc/>
    public void Execute()
    {
        int seen = Volatile.Read(ref _wakes);
        bool isLeft = false;
        foreach (Group? group in _groups)
        {
            isLeft |= group is not null && group.TakeNews() && Dispatch(group);
        }

        if (isLeft || Interlocked.Add(ref _wakes, -seen) != 0)
        {
            _queue(this);
        }
    }

    /// <summary>
    /// Reads what is new in a group on the thread of its loop. A hand-over to another thread for each turn costs more
    /// than the look-ups. False: that is too much here, or somebody else has the lock, and a work item is to do it.
    /// </summary>
    private bool TryDispatchHere(Group group)
    {
        if (Volatile.Read(ref _wakes) != 0 || !_lock.TryEnter())
        {
            return false;
        }

        try
        {
            if (!group.IsAttached || !FiltersOf(group.Log.Group.IsEphemeral).IsQuick)
            {
                return !group.IsAttached;
            }

            ChangeCursor cursor = group.Cursor;
            ChangePoint before = cursor.Point;
            ByteBuffer records = TakeRecords();
            switch (group.Log.Read(ref cursor, records, ChunkHereBytes))
            {
                case ChangeRead.More when !Match(group, in cursor, records.Written, before, isHere: true):
                case ChangeRead.Compacted or ChangeRead.EpochBegan:
                    return false;
            }

            group.Cursor = group.Dispatched = cursor;
            return cursor.Point >= group.Log.Status.Applied;
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // An exception that leaves a turn ends the process.
            return false;
        }
        finally
        {
            _lock.Exit();
        }
    }

    private void Wake()
    {
        if (Interlocked.Increment(ref _wakes) == 1)
        {
            _queue(this);
        }
    }

    private FilterIndex<object> FiltersOf(bool isEphemeral) => isEphemeral ? _ephemeral : _persistent;

    private void Attach()
    {
        foreach (Group? group in _groups)
        {
            group?.Attach();
        }
    }

    private void Detach()
    {
        foreach (Group? group in _groups)
        {
            group?.Detach();
        }

        _records?.Return();
        _records = null;
    }

    /// <summary>The empty buffer for the next read.</summary>
    private ByteBuffer TakeRecords()
    {
        _records ??= ByteBuffer.Rent(ChunkBytes);
        _records.Length = 0;
        return _records;
    }

    /// <summary>Reads what is new in a group. True: there may be more.</summary>
    private bool Dispatch(Group group)
    {
        try
        {
            for (int i = 0; i < ChunksMax; i++)
            {
                lock (_lock)
                {
                    if (!DispatchChunk(group))
                    {
                        return false;
                    }
                }
            }

            group.SetNews();
            return true;
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            LeaveToStreams(group);
            return false;
        }
    }

    /// <summary>
    /// Changes could not be looked up: each stream looks for itself, and one that cannot ends alone. The node goes on.
    /// </summary>
    private void LeaveToStreams(Group group)
    {
        lock (_lock)
        {
            foreach (WatchNews stream in _streams)
            {
                stream.TellAll(group.Index, group.Dispatched.Point);
            }

            group.Cursor = group.Dispatched = new ChangeCursor(group.Log.Status.Applied);
        }
    }

    private bool DispatchChunk(Group group)
    {
        if (!group.IsAttached)
        {
            return false;
        }

        ByteBuffer records = TakeRecords();
        ChangeCursor cursor = group.Cursor;
        ChangePoint before = cursor.Point;
        ChangeRead read = group.Log.Read(ref cursor, records, ChunkBytes);
        switch (read)
        {
            case ChangeRead.Compacted or ChangeRead.EpochBegan:
                // Any stream may miss something: each looks for itself.
                foreach (WatchNews stream in _streams)
                {
                    stream.TellAll(group.Index, before);
                }

                break;
            case ChangeRead.More:
                Match(group, in cursor, records.Written, before, isHere: false);
                break;
        }

        group.Cursor = group.Dispatched = cursor;
        return read is not (ChangeRead.End or ChangeRead.Ahead);
    }

    /// <summary>
    /// Tells the streams that changes concern. False: a change concerns several, which are too many to be told on the
    /// thread of a loop.
    /// </summary>
    /// <param name="group">The group.</param>
    /// <param name="end">Where the read has ended, directly behind the records.</param>
    /// <param name="records">What was read, of one segment.</param>
    /// <param name="before">Where the read began.</param>
    /// <param name="isHere">On the thread of the loop.</param>
    private bool Match(
        Group group, scoped in ChangeCursor end, ReadOnlySpan<byte> records, ChangePoint before, bool isHere)
    {
        FilterIndex<object> filters = FiltersOf(group.Log.Group.IsEphemeral);
        ChangeCursor place = end;
        place.Offset -= records.Length;
        place.Point = before;
        int length = records.Length;
        while (ChangeRecord.TryTake(ref records, out ChangeRecord record))
        {
            _matches.Clear();
            filters.Match(record.Key, _matches);
            foreach (Filter<object> filter in _matches)
            {
                if (filter.Value is WatchNews only)
                {
                    only.Tell(group.Index, in place);
                    continue;
                }

                if (isHere)
                {
                    return false;
                }

                foreach (WatchNews stream in (HashSet<WatchNews>)filter.Value)
                {
                    stream.Tell(group.Index, in place);
                }
            }

            place.Offset += length - records.Length;
            place.Point = new ChangePoint(group.Log.Group.Value, end.Point.Epoch, record.Index, record.N);
            length = records.Length;
        }

        return true;
    }

    /// <summary>
    /// One group: how far it was dispatched. The log tells it of news; the rest under the dispatcher's lock.
    /// </summary>
    private sealed class Group(WatchDispatcher dispatcher, ChangeLog log, int index) : IChangeObserver
    {
        private volatile Reached _dispatched = new(new ChangeCursor(default));
        private int _hasNews;

        public ChangeLog Log => log;

        public int Index => index;

        public ChangeCursor Cursor { get; set; }

        public bool IsAttached { get; private set; }

        /// <summary>Any thread reads it.</summary>
        public ChangeCursor Dispatched
        {
            get => _dispatched.Place;
            set => _dispatched = value.Point == _dispatched.Place.Point ? _dispatched : new Reached(value);
        }

        public void Attach()
        {
            IsAttached = true;
            log.Observer = this;
            Cursor = Dispatched = new ChangeCursor(log.Status.Applied);
            SetNews();
            dispatcher.Wake();
        }

        public void Detach()
        {
            log.Observer = null;
            IsAttached = false;
        }

        public void SetNews() => Volatile.Write(ref _hasNews, 1);

        public bool TakeNews() => Interlocked.Exchange(ref _hasNews, 0) != 0;

        /// <inheritdoc/>
        public void HasNews(ChangeLog told)
        {
            if (dispatcher.TryDispatchHere(this))
            {
                return;
            }

            if (Interlocked.Exchange(ref _hasNews, 1) == 0)
            {
                dispatcher.Wake();
            }
        }

        /// <summary>A place that any thread can read at once. Immutable.</summary>
        private sealed class Reached(ChangeCursor place)
        {
            public ChangeCursor Place => place;
        }
    }
}
