using System.Diagnostics.Metrics;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Storage;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The metrics of log, disk, checkpoints and memory. Stateless.</summary>
internal static class StorageInstruments
{
    private static readonly KeyValuePair<string, object?>[] s_persistent = [new(GroupLabels.Durability, "persistent")];
    private static readonly KeyValuePair<string, object?>[] s_ephemeral = [new(GroupLabels.Durability, "ephemeral")];

    /// <summary>Adds them.</summary>
    public static void Add(NodeMeter meter, NodeFigures node)
    {
        AddLog(meter, node);
        AddCheckpoints(meter, node.Checkpoints.Counts);
        LoopSet loops = node.Loops;
        meter.Gauge(
            new("kahuna.state.size", "Memory that the data takes up.", "By"),
            2,
            () => Both(loops.MemoryBytes.Persistent, loops.MemoryBytes.Ephemeral));
        meter.Gauge(
            new("kahuna.state.limit", "Memory that the data may take up.", "By"),
            2,
            () => Both(node.Limits.Persistent, node.Limits.Ephemeral));
    }

    private static void AddLog(NodeMeter meter, NodeFigures node)
    {
        ThreadedLog log = node.Log;
        meter.Gauge(new("kahuna.log.size", "Size of all segments of the log.", "By"), () => log.Bytes);
        meter.Gauge(
            new("kahuna.log.limit", "Size of the log above which writes are refused.", "By"), () => node.Limits.Log);
        meter.Gauge(new("kahuna.log.segments", "Number of segments.", "{segment}"), () => log.Segments);
        meter.Counter(new("kahuna.log.written", "Bytes that were written to the log.", "By"), () => log.Times.Bytes);
        meter.Counter(
            new("kahuna.log.batches", "Batches that were written, each with one sync.", "{batch}"),
            () => log.Times.Batches);
        meter.Histogram(
            new("kahuna.log.sync.duration", "How long the disk took to write and sync a batch of the log."),
            1,
            () => [HistogramSeries.Of([], [log.Times.Syncs])]);
        meter.Gauge(
            new("kahuna.log.stalled", "1 while the disk has not finished a write for an election timeout."),
            () => IsStalled(node.Loops) ? 1 : 0);
        meter.Gauge(
            new("kahuna.log.refusing", "1 while the log refuses writes: it is full, or the disk is nearly full."),
            () => log.RefuseWrites is null ? 0 : 1);
        meter.Gauge(
            new("kahuna.disk.free", "Free space on the disk of the log, as of the last second.", "By"),
            () => log.Disk.Free);
        meter.Gauge(new("kahuna.disk.size", "Size of the disk of the log.", "By"), () => log.Disk.Total);
    }

    private static void AddCheckpoints(NodeMeter meter, CheckpointCounts counts)
    {
        meter.Counter(
            new("kahuna.checkpoint.stored", "Checkpoints that were stored.", "{checkpoint}"), () => counts.Stored);
        meter.Counter(
            new("kahuna.checkpoint.written", "Bytes that were written for checkpoints.", "By"),
            () => counts.StoredBytes);
        meter.Counter(
            new("kahuna.checkpoint.failures", "Checkpoints that the disk had no room for.", "{checkpoint}"),
            () => counts.NotStored);
        meter.Counter(
            new("kahuna.snapshot.sent", "Snapshots that other nodes have put in place.", "{snapshot}"),
            () => counts.Sent);
        meter.Counter(
            new("kahuna.snapshot.sent.size", "Bytes of snapshots that were sent.", "By"), () => counts.SentBytes);
        meter.Counter(
            new("kahuna.snapshot.received", "Snapshots of other nodes that were put in place here.", "{snapshot}"),
            () => counts.Received);
    }

    private static IEnumerable<Measurement<long>> Both(long persistent, long ephemeral) =>
        [new(persistent, s_persistent), new(ephemeral, s_ephemeral)];

    private static bool IsStalled(LoopSet loops)
    {
        for (int i = 0; i < loops.Layout.Count; i++)
        {
            if (loops.Group(i).Metrics.IsStalled)
            {
                return true;
            }
        }

        return false;
    }
}
