using Kahuna.Server.Cluster;
using OpenTelemetry.Metrics;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Sends the metrics of a node to a receiver of the OpenTelemetry protocol, once a minute or as the variables
/// <c>OTEL_METRIC_EXPORT_INTERVAL</c> and <c>OTEL_EXPORTER_OTLP_…</c> say. A receiver that fails costs the node a
/// line of its log. Owned by the node.
/// </summary>
internal sealed class OtlpExport : IAsyncDisposable
{
    /// <summary>How long a stopping node tries to send the last figures.</summary>
    private const int LastMs = 3_000;

    private readonly MeterProvider _provider;
    private readonly OtlpFailures _failures;

    private OtlpExport(MeterProvider provider, OtlpFailures failures)
    {
        _provider = provider;
        _failures = failures;
    }

    /// <summary>Begins to send.</summary>
    /// <param name="meter">The instruments.</param>
    /// <param name="identity">The node.</param>
    /// <param name="target">The receiver.</param>
    /// <param name="failed">Gets the reason when the receiver fails, at most once a minute.</param>
    public static OtlpExport Start(
        NodeMeter meter, ClusterIdentity identity, OtlpTarget target, Action<string> failed)
    {
        OtlpFailures failures = new(failed, target.Time);
        MeterProvider provider = MeterProviders.Begin(meter, identity)
            .AddMeter(NodeMeter.Name)
            .AddMeter(NodeMeter.HistogramsName)
            .AddMeter(MeterProviders.RuntimeMeter)
            .AddOtlpExporter((options, reader) =>
            {
                target.Apply(options, "v1/metrics");
                if (target.PauseMs is { } pause)
                {
                    reader.PeriodicExportingMetricReaderOptions.ExportIntervalMilliseconds = pause;
                }
            })
            .Build();
        return new OtlpExport(provider, failures);
    }

    /// <summary>Sends the last figures, for 3 s at most, and ends.</summary>
    public async ValueTask DisposeAsync()
    {
        await Task.Run(() =>
        {
            _provider.Shutdown(LastMs);
            _provider.Dispose();
        }).ConfigureAwait(false);
        _failures.Dispose();
    }
}
