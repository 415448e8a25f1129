using System.Text.Json;
using Kahuna.Server.Hosting.Tracing;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Hosting.Tracing;

/// <summary>
/// The file of a trace and its lines; that whole nodes write the right ones is shown by Cluster/TraceTests.
/// </summary>
public sealed class NodeTraceTests : IDisposable
{
    private static readonly GroupId s_group = new(2);

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    private string Trace => Path.Combine(_directory.Path, "trace.jsonl");

    [Fact]
    public void Lines_are_in_order_and_say_who_and_when()
    {
        using (NodeTrace trace = NodeTrace.Open(Trace, new NodeId(3)))
        {
            trace.Started(voters: 3, groups: 2, directoryId: 0xAB);
            trace.Acknowledged(s_group, new LogIndex(7), new Term(2), writes: 5);
            trace.Applied(s_group, new LogIndex(7), [1, 2]);
        }

        JsonElement[] lines = Lines();
        Assert.Equal(["start", "acknowledged", "apply"], lines.Select(line => line.GetProperty("event").GetString()));
        Assert.All(lines, line => Assert.Equal(3, line.GetProperty("node").GetInt32()));
        Assert.Single(lines.Select(line => line.GetProperty("run").GetString()).Distinct());
        Assert.Equal(
            lines.Select(line => line.GetProperty("t").GetInt64()).Order(),
            lines.Select(line => line.GetProperty("t").GetInt64()));
        Assert.Equal("00000000000000ab", lines[0].GetProperty("directory").GetString());
        Assert.Equal(2, lines[1].GetProperty("group").GetInt32());
        Assert.Equal(
            ["0000000000000001", "0000000000000002"],
            lines[2].GetProperty("digests").EnumerateArray().Select(digest => digest.GetString()));
    }

    [Fact]
    public void Lines_are_with_the_system_after_a_flush()
    {
        using NodeTrace trace = NodeTrace.Open(Trace, new NodeId(1));
        trace.Committed(s_group, new LogIndex(1), new Term(1));
        Assert.Equal(0, new FileInfo(Trace).Length);
        trace.Flush();
        Assert.NotEqual(0, new FileInfo(Trace).Length);
    }

    [Fact]
    public void A_later_start_adds_to_the_file_and_ends_a_torn_line()
    {
        File.WriteAllText(Trace, "{\"t\":1,\"no");
        for (int run = 0; run < 2; run++)
        {
            using NodeTrace trace = NodeTrace.Open(Trace, new NodeId(1));
            trace.Started(voters: 1, groups: 1, directoryId: 1);
        }

        string[] lines = File.ReadAllLines(Trace);
        Assert.Equal("{\"t\":1,\"no", lines[0]);
        Assert.Equal(3, lines.Length);
        Assert.NotEqual(
            JsonElement.Parse(lines[1]).GetProperty("run").GetString(),
            JsonElement.Parse(lines[2]).GetProperty("run").GetString());
    }

    [Fact]
    public void A_file_that_cannot_be_written_is_refused_with_one_sentence()
    {
        IOException refusal = Assert.Throws<IOException>(() => NodeTrace.Open(_directory.Path, new NodeId(1)));
        Assert.StartsWith($"--trace: cannot write {_directory.Path}: ", refusal.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_disk_that_refuses_is_told_once()
    {
        const string Full = "/dev/full";
        if (!File.Exists(Full))
        {
            return;
        }

        List<string> failures = [];
        using NodeTrace trace = NodeTrace.Open(Full, new NodeId(1));
        trace.Failed += error => failures.Add(error.Message);
        trace.Started(voters: 1, groups: 1, directoryId: 1);
        trace.Started(voters: 1, groups: 1, directoryId: 1);
        Assert.StartsWith(
            "The trace /dev/full can no longer be written: ", Assert.Single(failures), StringComparison.Ordinal);
    }

    [Fact]
    public void What_passes_the_log_is_told_with_the_batch_that_makes_it_durable()
    {
        ByteBuffer entries = ByteBuffer.Rent();
        EntryCodec.Write(entries, new Term(2), EntryKind.Commands, [1, 2, 3]);
        PlainWriter plain = new();
        using (NodeTrace trace = NodeTrace.Open(Trace, new NodeId(1)))
        {
            TracedLogWriter traced = new(trace, plain, static _ =>
                new RecoveredGroup(new HardState(new Term(1), new NodeId(2), default), [], default, default, default));
            traced.Attach(plain);
            traced.Append(s_group, new LogIndex(1), 1, entries.Written);
            traced.Save(s_group, new HardState(new Term(2), new NodeId(1), default));
            Assert.Equal(1UL, traced.Submit());
            traced.Restart(s_group, new LogIndex(9), new Term(2));
            Assert.Equal(2UL, traced.Submit());
            ((ILogSink)traced).Persisted(2);
        }

        entries.Return();
        Assert.Equal(2UL, plain.Told);
        string hash = XxHash64.Hash([1, 2, 3], (byte)EntryKind.Commands).ToString("x16");
        Assert.Equal(
            [
                $$"""{"event":"append","group":2,"batch":1,"first":1,"entries":[[2,"{{hash}}"]]}""",
                """{"event":"restart","group":2,"batch":2,"index":9,"term":2}""",
                """{"event":"persisted","group":2,"batch":1,"index":1,"indexTerm":2,"term":2,"vote":1}""",
                """{"event":"persisted","group":2,"batch":2,"index":9,"indexTerm":2,"term":2,"vote":1}""",
            ],
            File.ReadAllLines(Trace).Select(line => "{" + line[line.IndexOf("\"event\"", StringComparison.Ordinal)..]));
    }

    [Fact]
    public void Votes_are_told_before_they_leave()
    {
        using (NodeTrace trace = NodeTrace.Open(Trace, new NodeId(1)))
        {
            IPeerTransport links = trace.Around(new PlainLinks(() => Assert.NotEqual(0, new FileInfo(Trace).Length)));
            ByteBuffer frame = links.BeginFrame();
            foreach (RaftMessage message in new RaftMessage[]
            {
                new() { Kind = RaftMessageKind.Vote, Term = new Term(4) },
                new() { Kind = RaftMessageKind.VoteReply, Term = new Term(5) },
                new() { Kind = RaftMessageKind.VoteReply, Term = new Term(6), Reject = true },
                new() { Kind = RaftMessageKind.Heartbeat, Term = new Term(7) },
            })
            {
                PeerFrame.EndMessage(frame, PeerFrame.BeginMessage(frame, s_group, message));
            }

            Assert.True(links.TrySend(new NodeId(2), frame));
        }

        Assert.Equal(
            [(4, 1), (5, 2)],
            Lines().Select(line => (line.GetProperty("term").GetInt32(), line.GetProperty("candidate").GetInt32())));
    }

    private JsonElement[] Lines() => [.. File.ReadAllLines(Trace).Select(static line => JsonElement.Parse(line))];

    /// <summary>Links with room in front of each frame, as the real ones have.</summary>
    private sealed class PlainLinks(Action sent) : IPeerTransport
    {
        public ByteBuffer BeginFrame()
        {
            ByteBuffer frame = ByteBuffer.Rent();
            frame.Take(4).Clear();
            return frame;
        }

        public bool HasWaiting(NodeId peer) => false;

        public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent)
        {
            sent();
            frame.Return();
            return true;
        }
    }

    /// <summary>A log that numbers batches, and a loop that remembers the last one it heard of.</summary>
    private sealed class PlainWriter : ILogWriter, ILogSink
    {
        private ulong _batches;

        public ulong Told { get; private set; }

        public int Pending => 0;

        public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes) => new byte[bytes];

        public void EndAppend()
        {
        }

        public void Save(GroupId group, in HardState state)
        {
        }

        public void Restart(GroupId group, LogIndex index, Term term)
        {
        }

        public ulong Submit() => ++_batches;

        public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax)
        {
        }

        public void Persisted(ulong batch) => Told = batch;

        public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries)
        {
        }

        public void Failed(Exception error)
        {
        }
    }
}
