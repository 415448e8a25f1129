using System.Diagnostics;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// A follower that starts without data beside a load: when it answers, has as many keys as there are, may vote, and is
/// back, which is when it also has applied what the leader had committed a moment ago. Owned by
/// <see cref="SnapshotSection"/>; one thread.
/// </summary>
internal sealed class Rebuild(ScaleCluster cluster, ServerNode node)
{
    private readonly ServerNode _leader = cluster.Leader;
    private readonly Stopwatch _elapsed = new();
    private long? _wanted;

    /// <summary>Seconds since the start, by what was reached.</summary>
    public Dictionary<string, double> Seconds { get; } = new(StringComparer.Ordinal);

    public List<RebuildStep> Timeline { get; } = [];

    /// <summary>Starts the node at the first call; true once it is back.</summary>
    public bool Step()
    {
        if (!_elapsed.IsRunning)
        {
            _elapsed.Start();
            node.Start("--rebuild", "--yes");
            return false;
        }

        if (!node.IsAlive)
        {
            throw new MeasureException($"node {node.Number} ended; {node.LogEnd}");
        }

        NodeStatus? status = node.Status();
        long applied = Sum(status, static partition => (long)partition.AppliedIndex);
        long keys = Sum(status, static partition => partition.Keys);
        if (status is not null)
        {
            Reach("answers", true);
            Reach("filled", keys >= cluster.Filled);
            bool votes = status.Partitions.All(static partition => partition.MayVote);
            Reach("votes", votes);
            Reach("back", votes && applied >= _wanted);
        }

        _wanted = Sum(_leader.RequireStatus(), static partition => (long)partition.CommitIndex);
        Timeline.Add(
            new RebuildStep(
                Math.Round(_elapsed.Elapsed.TotalSeconds, 2), _wanted.Value, status is null ? null : applied,
                status is null ? null : keys));
        return Seconds.ContainsKey("back");
    }

    private static long Sum(NodeStatus? status, Func<PartitionRow, long> field) => status?.Partitions.Sum(field) ?? 0;

    private void Reach(string point, bool isReached)
    {
        if (isReached)
        {
            Seconds.TryAdd(point, _elapsed.Elapsed.TotalSeconds);
        }
    }
}
