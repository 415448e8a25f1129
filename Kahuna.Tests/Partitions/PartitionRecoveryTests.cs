using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.Storage.States;
using Kahuna.Tests.Storage;
using Kahuna.Tests.Storage.States;

namespace Kahuna.Tests.Partitions;

/// <summary>What a partition starts from when the log no longer knows the term before its first entry, and the stored state does.</summary>
public sealed class PartitionRecoveryTests
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
        LoopOptions options = new() { Self = new NodeId(1), Voters = cluster.Ids, PreferredLeader = static _ => new NodeId(1), Seed = 1 };
        LoopPorts ports = new(1, TimeProvider.System, cluster, log, null!, cluster[1]) { States = states, Keeper = cluster[1].Keeper! };
        PartitionRecovery recovery = new(s_group, options, ports);
        recovery.LoadState();
        RaftCore core = recovery.RecoverLog(static (_, _) => { });
        Assert.Equal(expected, string.Join(',', log.Asked(core, stored)));
        Assert.Equal(52UL, core.LastIndex.Value);
        Assert.Equal(stored, core.LogStart.Value);
    }

    private static FileStateStore Stored(ulong index)
    {
        FileStateStore states = new(new ModelDisk(), "/state");
        using StateView view = new StateMachine(new StateLimits()).ViewAll();
        using IStateWriter writer = states.BeginWrite(s_group, new StateMark(new LogIndex(index), CutLog.TermAt(index), view.Summary), whole: true);
        StateSlices.Add(writer, view, 1_000);
        writer.Commit();
        return states;
    }

    /// <summary>A log from entry 12 to 52 that does not know the term of entry 11.</summary>
    private sealed class CutLog : ILogStore
    {
        private static readonly TermRun[] s_terms = [new(new LogIndex(12), new Term(3)), new(new LogIndex(50), new Term(4)), new(new LogIndex(51), new Term(5))];

        public string? RefuseWrites => null;

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
            new(new HardState(new Term(5), new NodeId(1), default), s_terms, new LogIndex(52), new LogIndex(11), default);

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

        public ILogWriter OpenWriter(ILogSink sink) => throw new InvalidOperationException();

        public void Release(GroupId group, LogIndex index) => throw new InvalidOperationException();

        public LogIndex StartOf(GroupId group) => new(11);

        public long BytesSince(GroupId group, LogIndex index) => 0;

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }
}
