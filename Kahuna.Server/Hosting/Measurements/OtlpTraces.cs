using System.Diagnostics;
using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using OpenTelemetry;
using OpenTelemetry.Exporter;
using OpenTelemetry.Trace;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Sends the activities of a node to a receiver of the OpenTelemetry protocol, in batches and on a thread of its own. A
/// receiver that fails costs the traces. Owned by the node.
/// </summary>
internal sealed class OtlpTraces : IAsyncDisposable
{
    /// <summary>How long a stopping node tries to send the last traces.</summary>
    private const int LastMs = 3_000;

    private readonly TracerProvider _provider;

    private OtlpTraces(TracerProvider provider) => _provider = provider;

    /// <summary>Begins to send.</summary>
    /// <param name="source">Whose activities are sent.</param>
    /// <param name="identity">The node.</param>
    /// <param name="target">The receiver.</param>
    public static OtlpTraces Start(ActivitySource source, ClusterIdentity identity, OtlpTarget target)
    {
        OtlpExporterOptions options = new();
        target.Apply(options, "v1/traces");

        return new OtlpTraces(Sdk.CreateTracerProviderBuilder()
            .ConfigureResource(resource => MeterProviders.Describe(resource, identity))
            .SetSampler(new ParentBasedSampler(new AlwaysOnSampler()))
            .AddSource(ServerTraces.Name)
            .AddProcessor(new OwnActivities(source, options))
            .Build());
    }

    /// <summary>Sends the last traces, for 3 s at most, and ends.</summary>
    public async ValueTask DisposeAsync() => await Task.Run(() =>
    {
        _provider.Shutdown(LastMs);
        _provider.Dispose();
    }).ConfigureAwait(false);

    /// <summary>Leaves out the activities of other nodes of the process, which have providers of their own.</summary>
    private sealed class OwnActivities(ActivitySource source, OtlpExporterOptions options)
        : BatchActivityExportProcessor(new OtlpTraceExporter(options))
    {
        public override void OnEnd(Activity data)
        {
            if (data.Source == source)
            {
                base.OnEnd(data);
            }
        }
    }
}
