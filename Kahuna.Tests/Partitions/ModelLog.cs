using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// A log in memory with an explicit sync: what is not synced is lost by <see cref="Crash"/>. One thread.
/// </summary>
internal sealed class ModelLog : ILogStore
{
    private readonly List<Action> _unsynced = [];
    private readonly Queue<int> _batches = new();
    private readonly Dictionary<GroupId, Group> _groups = [];
    private ILogSink? _sink;
    private Writer? _writer;

    public string? RefuseWrites { get; set; }

    public long HeldBytesMax { get; set; } = long.MaxValue;

    /// <summary>Batches submitted and not synced.</summary>
    public int Pending { get; private set; }

    /// <summary>Changes the payloads of what is replayed, as a program that applies them differently would.</summary>
    public Func<byte[], byte[]> Changes { get; set; } = static payload => payload;

    /// <summary>
    /// Newest batches that a sync leaves behind: under load there is never a moment in which none is under way.
    /// </summary>
    public int Behind { get; set; }

    public int Syncs { get; private set; }

    public RecoveredGroup Recovered(GroupId group) =>
        _groups.TryGetValue(group, out Group? found)
            ? new RecoveredGroup(found.HardState, found.Runs(), found.LastIndex, found.Start, found.StartTerm)
            : new RecoveredGroup(default, [], default, default, default);

    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        _groups[group].Copy(first, last, buffer, Changes);
        visit(first, buffer.WrittenMemory);
        buffer.Return();
    }

    /// <summary>
    /// Notes it; entries go when the test says so (<see cref="Cut"/>), as a log that is large enough without them would
    /// let them go.
    /// </summary>
    public void Release(GroupId group, LogIndex index)
    {
        Group target = GroupOf(group);
        target.Released = new LogIndex(Math.Max(target.Released.Value, index.Value));
    }

    /// <summary>Groups that have stopped.</summary>
    public HashSet<GroupId> Abandoned { get; } = [];

    public void Abandon(GroupId group) => Abandoned.Add(group);

    public LogIndex StartOf(GroupId group) => _groups.TryGetValue(group, out Group? found) ? found.Start : default;

    /// <summary>The group's own bytes: a model of a log in which the other groups are silent.</summary>
    public long BytesSince(GroupId group, LogIndex index) =>
        _groups.TryGetValue(group, out Group? found)
            ? found.Entries.Skip((int)(Math.Max(index.Value, found.Start.Value) - found.Start.Value))
                .Sum(entry => (long)EntryCodec.HeaderBytes + entry.Payload.Length)
            : 0;

    /// <summary>Drops every group's released entries.</summary>
    public void Cut()
    {
        foreach (Group group in _groups.Values)
        {
            group.Cut();
        }
    }

    public ILogWriter OpenWriter(ILogSink sink)
    {
        _sink = sink;
        return _writer = new Writer(this);
    }

    /// <summary>Makes everything that was submitted durable and tells the loop; false when nothing was.</summary>
    public bool Sync()
    {
        if (Pending <= Behind)
        {
            return false;
        }

        int writes = 0;
        for (; Pending > Behind; Pending--)
        {
            writes += _batches.Dequeue();
        }

        foreach (Action write in _unsynced[..writes])
        {
            write();
        }

        _unsynced.RemoveRange(0, writes);
        Syncs++;
        _sink!.Persisted(_writer!.Submitted - (ulong)Pending);
        return true;
    }

    /// <summary>Forgets what was not synced; the next loop opens the log anew.</summary>
    public void Crash()
    {
        _unsynced.Clear();
        _batches.Clear();
        Pending = 0;
        _sink = null;
        _writer = null;
    }

    public ValueTask DisposeAsync() => ValueTask.CompletedTask;

    private Group GroupOf(GroupId group)
    {
        if (!_groups.TryGetValue(group, out Group? found))
        {
            _groups[group] = found = new Group();
        }

        return found;
    }

    private sealed class Group
    {
        public HardState HardState { get; set; }

        /// <summary>What the log holds: entries from <see cref="Start"/> + 1 on.</summary>
        public List<(Term Term, EntryKind Kind, FeatureLevel Level, byte[] Payload)> Entries { get; } = [];

        public LogIndex Start { get; private set; }

        public Term StartTerm { get; private set; }

        public LogIndex Released { get; set; }

        public LogIndex LastIndex => Start + (ulong)Entries.Count;

        public List<TermRun> Runs()
        {
            List<TermRun> runs = [];
            for (int i = 0; i < Entries.Count; i++)
            {
                if (runs.Count == 0 || runs[^1].Term != Entries[i].Term)
                {
                    runs.Add(new TermRun(Start + ((ulong)i + 1), Entries[i].Term));
                }
            }

            return runs;
        }

        public void Copy(LogIndex first, LogIndex last, ByteBuffer target, Func<byte[], byte[]>? changes = null)
        {
            for (ulong i = first.Value; first > Start && i <= last.Value && i <= LastIndex.Value; i++)
            {
                (Term term, EntryKind kind, FeatureLevel level, byte[] payload) = Entries[At(new LogIndex(i))];
                EntryCodec.Write(target, term, kind, changes?.Invoke(payload) ?? payload, level);
            }
        }

        public void Truncate(LogIndex first)
        {
            Assert.True(first > Start && first <= LastIndex.Next(), "the log has no gaps");
            Entries.RemoveRange(At(first), Entries.Count - At(first));
        }

        public void Cut()
        {
            int count = At(new LogIndex(Math.Clamp(Released.Value, Start.Value, LastIndex.Value)).Next());
            StartTerm = count > 0 ? Entries[count - 1].Term : StartTerm;
            Entries.RemoveRange(0, count);
            Start += (ulong)count;
        }

        public void Restart(LogIndex index, Term term)
        {
            Entries.Clear();
            Start = index;
            StartTerm = term;
        }

        private int At(LogIndex index) => (int)(index.Value - Start.Value) - 1;
    }

    private sealed class Writer(ModelLog log) : ILogWriter
    {
        private bool _open;
        private (GroupId Group, LogIndex First, int Count, byte[] Bytes) _begun;

        public ulong Submitted { get; private set; }

        public int Pending => log.Pending;

        public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes)
        {
            _begun = (group, first, count, new byte[bytes]);
            return _begun.Bytes;
        }

        public void EndAppend()
        {
            (GroupId group, LogIndex first, int count, byte[] copy) = _begun;
            _open = true;
            log._unsynced.Add(() =>
            {
                Group target = log.GroupOf(group);
                target.Truncate(first);
                ReadOnlySpan<byte> rest = copy;
                int read = 0;
                while (EntryCodec.TryRead(
                    ref rest,
                    out Term term,
                    out EntryKind kind,
                    out FeatureLevel level,
                    out ReadOnlySpan<byte> payload))
                {
                    target.Entries.Add((term, kind, level, payload.ToArray()));
                    read++;
                }

                Assert.Equal(count, read);
            });
        }

        public void Save(GroupId group, in HardState state)
        {
            HardState copy = state;
            _open = true;
            log._unsynced.Add(() => log.GroupOf(group).HardState = copy);
        }

        public void Restart(GroupId group, LogIndex index, Term term)
        {
            _open = true;
            log._unsynced.Add(() => log.GroupOf(group).Restart(index, term));
        }

        public ulong Submit()
        {
            if (!_open)
            {
                return 0;
            }

            _open = false;
            log.Pending++;
            log._batches.Enqueue(log._unsynced.Count - log._batches.Sum());
            return ++Submitted;
        }

        public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax)
        {
            ByteBuffer buffer = ByteBuffer.Rent();
            log.GroupOf(group).Copy(first, new LogIndex(first.Value + 63), buffer);
            log._sink!.Fetched(group, follower, first, buffer);
        }
    }
}
