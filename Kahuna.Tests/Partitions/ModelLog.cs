using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Partitions;

/// <summary>A log in memory with an explicit sync: what is not synced is lost by <see cref="Crash"/>. One thread.</summary>
internal sealed class ModelLog : ILogStore
{
    private readonly List<Action> _unsynced = [];
    private readonly Dictionary<GroupId, Group> _groups = [];
    private ILogSink? _sink;
    private Writer? _writer;

    public string? RefuseWrites { get; set; }

    /// <summary>Batches submitted and not synced.</summary>
    public int Pending { get; private set; }

    public int Syncs { get; private set; }

    public RecoveredGroup Recovered(GroupId group) =>
        _groups.TryGetValue(group, out Group? found)
            ? new RecoveredGroup(found.HardState, found.Runs(), new LogIndex((ulong)found.Entries.Count))
            : new RecoveredGroup(default, [], default);

    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        _groups[group].Copy(first, last, buffer);
        visit(first, buffer.WrittenMemory);
        buffer.Return();
    }

    public ILogWriter OpenWriter(ILogSink sink)
    {
        _sink = sink;
        return _writer = new Writer(this);
    }

    /// <summary>Makes everything that was submitted durable and tells the loop.</summary>
    public void Sync()
    {
        if (Pending == 0)
        {
            return;
        }

        foreach (Action write in _unsynced)
        {
            write();
        }

        _unsynced.Clear();
        Pending = 0;
        Syncs++;
        _sink!.Persisted(_writer!.Submitted);
    }

    /// <summary>Forgets what was not synced; the next loop opens the log anew.</summary>
    public void Crash()
    {
        _unsynced.Clear();
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

        public List<(Term Term, EntryKind Kind, byte[] Payload)> Entries { get; } = [];

        public List<TermRun> Runs()
        {
            List<TermRun> runs = [];
            for (int i = 0; i < Entries.Count; i++)
            {
                if (runs.Count == 0 || runs[^1].Term != Entries[i].Term)
                {
                    runs.Add(new TermRun(new LogIndex((ulong)i + 1), Entries[i].Term));
                }
            }

            return runs;
        }

        public void Copy(LogIndex first, LogIndex last, ByteBuffer target)
        {
            for (ulong i = first.Value; i <= last.Value && i <= (ulong)Entries.Count; i++)
            {
                (Term term, EntryKind kind, byte[] payload) = Entries[(int)i - 1];
                EntryCodec.Write(target, term, kind, payload);
            }
        }
    }

    private sealed class Writer(ModelLog log) : ILogWriter
    {
        private bool _open;

        public ulong Submitted { get; private set; }

        public int Pending => log.Pending;

        public void Append(GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
        {
            byte[] copy = entries.ToArray();
            _open = true;
            log._unsynced.Add(() =>
            {
                Group target = log.GroupOf(group);
                Assert.True(first.Value <= (ulong)target.Entries.Count + 1, "the log has no gaps");
                target.Entries.RemoveRange((int)first.Value - 1, target.Entries.Count - (int)first.Value + 1);
                ReadOnlySpan<byte> rest = copy;
                int read = 0;
                while (EntryCodec.TryRead(ref rest, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload))
                {
                    target.Entries.Add((term, kind, payload.ToArray()));
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

        public ulong Submit()
        {
            if (!_open)
            {
                return 0;
            }

            _open = false;
            log.Pending++;
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
