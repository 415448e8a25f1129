using System.Diagnostics.Metrics;
using System.Globalization;
using Kahuna.Server.Cluster;
using OpenTelemetry;
using OpenTelemetry.Metrics;
using OpenTelemetry.Resources;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>What all readers of a node's instruments have in common. Stateless.</summary>
internal static class MeterProviders
{
    /// <summary>The meter of the .NET runtime: collector, thread pool, exceptions, processor time.</summary>
    public const string RuntimeMeter = "System.Runtime";

    /// <summary>The runtime's metrics have a few series each: generations, or types of exceptions.</summary>
    private const int RuntimeSeriesMax = 64;

    /// <summary>
    /// Begins a provider of this node's instruments. Those of other nodes in the process are left out. Each instrument
    /// gets room for the series that it can have: by default OpenTelemetry reserves 2,000 for each, 20 MB for all.
    /// </summary>
    public static MeterProviderBuilder Begin(NodeMeter meter, ClusterIdentity identity) =>
        Sdk.CreateMeterProviderBuilder()
            .ConfigureResource(resource => Describe(resource, identity))
            .AddView(instrument => Limit(meter, instrument));

    /// <summary>Says of which node metrics and traces are.</summary>
    public static void Describe(ResourceBuilder resource, ClusterIdentity identity) => resource
        .AddService(
            "kahuna-server",
            serviceVersion: identity.Version,
            autoGenerateServiceInstanceId: false,
            serviceInstanceId: identity.Self.Value.ToString(CultureInfo.InvariantCulture))
        .AddAttributes([new KeyValuePair<string, object>("kahuna.cluster.id", identity.ClusterId)]);

    private static MetricStreamConfiguration? Limit(NodeMeter meter, Instrument instrument) =>
        meter.SeriesOf(instrument) is { } series
                ? new MetricStreamConfiguration { CardinalityLimit = series }
            : instrument.Meter.Name == RuntimeMeter
                ? new MetricStreamConfiguration { CardinalityLimit = RuntimeSeriesMax }
            : MetricStreamConfiguration.Drop;
}
