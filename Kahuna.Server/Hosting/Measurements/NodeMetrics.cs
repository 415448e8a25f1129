using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The metrics of a node: its instruments, the page and the export. Owned by the node; any thread.
/// </summary>
internal sealed class NodeMetrics : IAsyncDisposable
{
    private readonly NodeMeter _meter = new();
    private readonly OtlpExport? _export;
    private readonly OtlpTraces? _traces;

    /// <summary>Makes the instruments, and begins the export if it is wanted.</summary>
    /// <param name="node">Where they are read.</param>
    /// <param name="options">The options about metrics.</param>
    /// <param name="services">The services of the web server.</param>
    /// <param name="exportFailed">Gets the reason when a receiver fails, at most once a minute.</param>
    public NodeMetrics(
        NodeFigures node, MetricsOptions options, IServiceProvider services, Action<string> exportFailed)
    {
        GroupLabels groups = new(node.View.Layout);
        DoorInstruments.Add(_meter, node, TimeProvider.System);
        RaftInstruments.Add(_meter, node, groups);
        StorageInstruments.Add(_meter, node);
        StateInstruments.Add(_meter, node, groups);
        new OperationInstruments(node.Times, node.Loops.Refusals).Add(_meter);
        _meter.Counter(
            new("kahuna.traces.lost", "Traced operations of which no activity was made.", "{operation}"),
            () => node.Traces?.Lost ?? 0);
        Page = new MetricsPage(_meter, node.View.Identity, services, TimeProvider.System);
        OtlpTarget target = new(options.OtlpEndpoint);
        _export = options.Exports
            ? OtlpExport.Start(_meter, node.View.Identity, target, exportFailed)
            : null;
        _traces = options.Exports && node.Traces is { } traces
            ? OtlpTraces.Start(traces.Server.Source, node.View.Identity, target) : null;
    }

    /// <summary>The page <c>/metrics</c>.</summary>
    public MetricsPage Page { get; }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        // Both at a time, because a receiver that is gone makes each of them wait.
        await Task.WhenAll(
            _traces?.DisposeAsync().AsTask() ?? Task.CompletedTask,
            _export?.DisposeAsync().AsTask() ?? Task.CompletedTask).ConfigureAwait(false);

        Page.Dispose();
        _meter.Dispose();
    }
}
