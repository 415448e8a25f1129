using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Storage;
using Kahuna.Tests.Storage.Checkpoints;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>
/// What a partition starts from when the log no longer knows the term before its first entry, and the stored state
/// does.
/// </summary>
public sealed class GroupRecoveryTests
{
    private static readonly GroupId s_group = new(1);

    [Theory]
    [InlineData(49, "50:4,51:5")]
    [InlineData(50, "51:5")]
    [InlineData(51, "52:5")]
    [InlineData(52, "")]
    [InlineData(20, "21:3,50:4,51:5")]
    public void Terms_behind_the_stored_state_are_kept(ulong stored, string expected)
    {
        CutLog log = new();
        FileStateStore states = Stored(stored);
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, log, null!, cluster[1])
        {
            States = states,
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        GroupRecovery recovery = new(s_group, Options(cluster), ports);
        recovery.LoadState();
        RaftCore core = recovery.RecoverLog(static (_, _, _) => { });
        Assert.Equal(expected, string.Join(',', log.Asked(core, stored)));
        Assert.Equal(52UL, core.LastIndex.Value);
        Assert.Equal(stored, core.LogStart.Value);
    }

    [Theory]
    [InlineData(51, 6)]
    [InlineData(51, 4)]
    [InlineData(60, 5)]
    public void A_log_of_another_history_than_the_state_begins_anew(ulong stored, ulong term)
    {
        CutLog log = new() { Term = new Term(Math.Max(term, 5)) };
        ModelCluster cluster = new(1);
        GroupRecovery recovery = new(
            s_group,
            Options(cluster),
            new LoopPorts(1, TimeProvider.System, cluster, log, null!, cluster[1])
            {
                States = Stored(stored, new Term(term)),
                Checkpoints = cluster[1].Keeper!,
                FatalErrors = RethrownErrors.Shared,
            });
        recovery.LoadState();
        RaftCore core = recovery.RecoverLog(static (_, _, _) => { });

        Assert.True(recovery.LogRestarts);
        Assert.Equal((stored, stored), (core.LastIndex.Value, core.LogStart.Value));
    }

    [Fact]
    public void A_state_of_a_later_term_than_the_log_knows_is_refused_with_the_way_out()
    {
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, new CutLog(), null!, cluster[1])
        {
            States = Stored(51, new Term(6)),
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        GroupRecovery recovery = new(s_group, Options(cluster), ports);
        recovery.LoadState();
        string message = Assert.Throws<GroupUnusableException>(
            () => recovery.RecoverLog(static (_, _, _) => { })).Message;

        Assert.Contains(
            "the stored state is of term 6, and the log knows no term after 5", message, StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_log_that_begins_behind_the_end_of_the_state_is_refused_with_the_way_out()
    {
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, new CutLog(), null!, cluster[1])
        {
            States = Stored(10, new Term(3)),
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        GroupRecovery recovery = new(s_group, Options(cluster), ports);
        recovery.LoadState();
        string message = Assert.Throws<GroupUnusableException>(
            () => recovery.RecoverLog(static (_, _, _) => { })).Message;

        Assert.Contains(
            "the log begins after entry 11, and the stored state in state/ ends with entry 10",
            message,
            StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_log_whose_state_is_gone_is_refused_with_its_directory_and_the_way_out()
    {
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, new CutLog(), null!, cluster[1])
        {
            States = new FileStateStore(new ModelDisk(), "/state"),
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        GroupRecovery recovery = new(s_group, Options(cluster), ports);
        recovery.LoadState();
        string message = Assert.Throws<GroupUnusableException>(
            () => recovery.RecoverLog(static (_, _, _) => { })).Message;

        Assert.Contains(
            "state/ in the data directory has no state of it (is a disk not mounted?)",
            message,
            StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", message, StringComparison.Ordinal);
    }

    [Fact]
    public void The_old_log_is_released_when_the_new_beginning_is_on_stable_storage()
    {
        CutLog log = new() { Term = new Term(6) };
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, log, null!, cluster[1])
        {
            States = Stored(51, new Term(6)),
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        LoopSet loops = new(Options(cluster), ports);
        cluster[1].Keeper!.Attach(loops, static () => { });
        loops.Loops[0].PostTick();
        cluster.Settle(sync: false);
        Assert.Equal([(51UL, 6UL)], log.Restarts);
        Assert.Empty(log.Released);

        log.Sink!.Persisted(log.Submitted);
        cluster.Settle(sync: false);
        Assert.Equal([51UL], log.Released);
    }

    private static LoopOptions Options(ModelCluster cluster) =>
        new() { Self = new NodeId(1), Voters = cluster.Ids, PreferredLeader = static _ => new NodeId(1), Seed = 1 };

    private static FileStateStore Stored(ulong index) => Stored(index, CutLog.TermAt(index));

    private static FileStateStore Stored(ulong index, Term term)
    {
        FileStateStore states = new(new ModelDisk(), "/state");
        using StateView view = new StateMachine(new StateLimits()).ViewAll();
        using IStateWriter writer = states.BeginWrite(
            s_group, new CheckpointMark(new LogIndex(index), term, view.Summary), whole: true);
        StateSlices.Add(writer, view, 1_000);
        writer.Commit();
        return states;
    }

    /// <summary>A log from entry 12 to 52 that does not know the term of entry 11.</summary>
    private sealed class CutLog : ILogStore, ILogWriter
    {
        private static readonly TermRun[] s_terms =
        [
            new(new LogIndex(12), new Term(3)),
            new(new LogIndex(50), new Term(4)),
            new(new LogIndex(51), new Term(5)),
        ];

        public string? RefuseWrites => null;

        public long HeldBytesMax => long.MaxValue;

        public Term Term { get; init; } = new(5);

        public ILogSink? Sink { get; private set; }

        public ulong Submitted { get; private set; }

        public List<(ulong Index, ulong Term)> Restarts { get; } = [];

        public List<ulong> Released { get; } = [];

        int ILogWriter.Pending => 0;

        public static Term TermAt(ulong index) => s_terms.Last(run => run.First.Value <= index).Term;

        /// <summary>The runs of what the core has, as it tells them term by term.</summary>
        public IEnumerable<string> Asked(RaftCore core, ulong stored)
        {
            Term before = default;
            for (ulong index = stored + 1; index <= core.LastIndex.Value; index++)
            {
                core.Payload(new LogIndex(index), out Term term, out _);
                if (term != before)
                {
                    yield return $"{index}:{term}";
                }

                before = term;
            }
        }

        public RecoveredGroup Recovered(GroupId group) =>
            new(new HardState(Term, new NodeId(1), default), s_terms, new LogIndex(52), new LogIndex(11), default);

        public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit)
        {
            ByteBuffer entries = ByteBuffer.Rent();
            for (LogIndex index = first; index <= last; index = index.Next())
            {
                EntryCodec.Write(entries, TermAt(index.Value), EntryKind.Commands, []);
            }

            visit(first, entries.WrittenMemory);
            entries.Return();
        }

        public ILogWriter OpenWriter(ILogSink sink)
        {
            Sink = sink;
            return this;
        }

        public void Release(GroupId group, LogIndex index) => Released.Add(index.Value);

        Span<byte> ILogWriter.BeginAppend(GroupId group, LogIndex first, int count, int bytes) => new byte[bytes];

        void ILogWriter.EndAppend()
        {
        }

        void ILogWriter.Save(GroupId group, in HardState state)
        {
        }

        void ILogWriter.Restart(GroupId group, LogIndex index, Term term) => Restarts.Add((index.Value, term.Value));

        ulong ILogWriter.Submit() => ++Submitted;

        void ILogWriter.Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax)
        {
        }

        public void Abandon(GroupId group) => throw new InvalidOperationException();

        public LogIndex StartOf(GroupId group) => new(11);

        public long BytesSince(GroupId group, LogIndex index) => 0;

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }
}
