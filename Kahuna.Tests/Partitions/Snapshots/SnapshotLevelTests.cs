using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.State;
using Kahuna.Tests.Storage;
using Kahuna.Tests.Storage.Checkpoints;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Snapshots;

/// <summary>
/// Stored and sent states carry the feature level of their last entry, and level 1 has the bytes of before.
/// </summary>
public sealed class SnapshotLevelTests : IDisposable
{
    private static readonly GroupId s_group = new(1);
    private static readonly FeatureLevel s_level = new(0x0203);

    private readonly string _root = Directory.CreateTempSubdirectory("kahuna-level-").FullName;
    private readonly StateDriver _state = new();

    public void Dispose() => Directory.Delete(_root, recursive: true);

    [Fact]
    public void Both_stores_keep_the_level()
    {
        using RocksStateStore rocks = new(Path.Combine(_root, "rocks"));
        FileStateStore files = new(new ModelDisk(), "/state");
        foreach (IStateStore store in new IStateStore[] { rocks, files })
        {
            foreach (FeatureLevel level in new[] { FeatureLevel.First, s_level })
            {
                using StateView view = _state.Machine.ViewAll();
                CheckpointMark mark = Mark(view, level);
                using IStateWriter writer = store.BeginWrite(s_group, mark, whole: true);
                StateSlices.Add(writer, view, 1_000);
                writer.Commit();
                Assert.Equal(mark, store.Find(s_group));
            }
        }
    }

    [Fact]
    public void A_chunk_carries_the_level_where_older_formats_have_zero()
    {
        using StateView view = _state.Machine.ViewAll();
        ByteBuffer first = Chunk(Mark(view, FeatureLevel.First));
        ByteBuffer raised = Chunk(Mark(view, s_level));
        Assert.Equal([0, 0], first.Written[6..8].ToArray());
        Assert.Equal([0x02, 0x02], raised.Written[6..8].ToArray());
        Assert.Equal(first.Length, raised.Length);
        Assert.True(SnapshotFrame.TryReadChunk(raised.Written, out CheckpointMark mark, out _));
        Assert.Equal(s_level, mark.Level);
        raised.Array[6] = 0;
        Assert.False(SnapshotFrame.TryReadChunk(raised.Written, out _, out _));
    }

    [Fact]
    public void A_snapshot_above_the_own_level_is_not_taken_and_stops_the_node()
    {
        List<Exception> failures = [];
        FileStateStore store = new(new ModelDisk(), "/state");
        ModelCluster cluster = new(1);
        using CheckpointService keeper = new(
            new CheckpointOptions { Self = new NodeId(1), FirstTransfer = 1 },
            new CheckpointPorts(store, new ModelLog(), cluster[1].Ports!.Transport, TimeProvider.System, _ => { }),
            failures.Add);
        using StateView view = _state.Machine.ViewAll();
        keeper.Receive(new NodeId(2), Chunk(Mark(view, FeatureLevels.Test)).Written);
        while (keeper.Step())
        {
        }

        Assert.Equal(
            $"The cluster has feature level {FeatureLevels.Test} (in a snapshot of "
                + $"{s_group.Name} from node 2), and this "
                + "version supports level 1 only. Start this node with a version that supports it, as the other nodes "
                + "run.",
            Assert.IsType<FeatureLevelException>(Assert.Single(failures)).Message);
        Assert.Null(store.Find(s_group));
    }

    [Fact]
    public void A_stored_state_above_the_own_level_is_not_loaded()
    {
        FileStateStore store = new(new ModelDisk(), "/state");
        using (StateView view = _state.Machine.ViewAll())
        using (IStateWriter writer = store.BeginWrite(s_group, Mark(view, FeatureLevels.Test), whole: true))
        {
            StateSlices.Add(writer, view, 1_000);
            writer.Commit();
        }

        ModelCluster cluster = new(1);
        LoopPorts ports = cluster[1].Ports! with { States = store };
        Server.Partitions.Groups.GroupRecovery recovery = new(
            s_group,
            new LoopOptions
            {
                Self = new NodeId(1),
                Voters = cluster.Ids,
                PreferredLeader = static _ => new NodeId(1),
                Seed = 1,
            },
            ports);
        Assert.Contains(
            $"({s_group.Name}, its stored state)",
            Assert.Throws<FeatureLevelException>(recovery.LoadState).Message,
            StringComparison.Ordinal);
    }

    private static CheckpointMark Mark(StateView view, FeatureLevel level) =>
        new(new LogIndex(2), new Term(1), view.Summary) { Level = level };

    private static ByteBuffer Chunk(in CheckpointMark mark)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        SnapshotFrame.WriteChunk(
            frame, new SnapshotHeader(s_group, SnapshotFrame.LastFlag, new Term(1), 1, 0, default), mark, [1, 2, 3]);
        return frame;
    }
}
