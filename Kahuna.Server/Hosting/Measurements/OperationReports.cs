using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// What the loops tell of single operations: slow ones go to the slow log, and traced ones become activities. Owned by
/// the node; any thread.
/// </summary>
/// <param name="node">The node.</param>
/// <param name="options">The options about metrics.</param>
/// <param name="clock">The node's clock.</param>
internal sealed class OperationReports(NodeId node, MetricsOptions options, TimeProvider clock)
    : ILongOperations, IAsyncDisposable
{
    /// <summary>The newest operations that took long.</summary>
    public SlowLog Slow { get; } = new(node, options.SlowLogThreshold, clock);

    /// <summary>Traced operations; null: none is.</summary>
    public OperationTraces? Traces { get; } = options.IsOn ? new(node, options.TraceRatio, clock) : null;

    /// <inheritdoc/>
    public int ThresholdUs => Slow.ThresholdUs;

    /// <summary>The counters, one for each loop; null: operations are not counted.</summary>
    public OperationTimes[]? Times(int loops) => options.IsOn
        ? [.. Enumerable.Range(0, loops).Select(_ => new OperationTimes(clock, this))]
        : null;

    /// <inheritdoc/>
    public void Add(LongOperation operation)
    {
        string traceId = operation.Tag.Trace != 0 && Traces is { } traces ? traces.End(operation) : "";
        if ((int)(operation.Answered - operation.Tag.Stamp) >= ThresholdUs)
        {
            Slow.Add(operation, traceId);
        }
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => Traces?.DisposeAsync() ?? ValueTask.CompletedTask;
}
