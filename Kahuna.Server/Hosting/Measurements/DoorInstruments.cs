using Kahuna.Server.Api.Watches;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Observability;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The metrics of connections, watches, certificates and of the node as a whole. Stateless.</summary>
internal static class DoorInstruments
{
    /// <summary>Adds them.</summary>
    /// <param name="meter">Where they are added.</param>
    /// <param name="node">The node.</param>
    /// <param name="time">The clock by which certificates expire.</param>
    public static void Add(NodeMeter meter, NodeFigures node, TimeProvider time)
    {
        AddNode(meter, node, time);
        AddWatches(meter, node.Watches);
        AddressLimiter addresses = node.Addresses;
        meter.Gauge(
            new("kahuna.connections", "Open connections, those of other nodes and of monitoring included.",
                "{connection}"),
            () => node.Connections());
        meter.Gauge(
            new("kahuna.connections.direct", "Clients whose requests come over a direct link.", "{connection}"),
            () => node.Direct.Open);
        meter.Gauge(
            new("kahuna.connections.counted", "Open connections that count for --connections-per-address.",
                "{connection}"),
            () => addresses.Figures.Connections);
        meter.Gauge(
            new("kahuna.connections.addresses", "Remote addresses that have such a connection.", "{address}"),
            () => addresses.Figures.Addresses);
        meter.Counter(
            new("kahuna.connections.refused", "Connections that --connections-per-address refused.", "{connection}"),
            () => addresses.Figures.Refused);
        meter.Gauge(
            new("kahuna.replies.size", "Answers that wait until their callers read them.", "By"),
            () => node.Watches.Room.Used);
        meter.Gauge(
            new("kahuna.replies.limit", "Memory for answers that wait; beyond it, reads wait.", "By"),
            () => node.Watches.Room.BytesMax);
    }

    private static void AddNode(NodeMeter meter, NodeFigures node, TimeProvider time)
    {
        meter.Gauge(
            new("kahuna.node.ready", "1 while the node is ready, as /readyz says."),
            () => node.View.IsReady(out _) ? 1 : 0);
        meter.Gauge(
            new("kahuna.cluster.feature_level", "The feature level of the cluster, as far as this node knows."),
            () => node.View.FeatureLevel.Value);
        meter.Gauge(
            new("kahuna.certificate.remaining", "Time until the first certificate expires that the node depends on.",
                "s"),
            () =>
            {
                DateTime now = time.GetUtcNow().UtcDateTime;
                return (CertificateChain.FirstToEnd(node.Tls.Current, now).Certificate.NotAfter.ToUniversalTime() - now)
                    .TotalSeconds;
            });
        meter.Counter(
            new("kahuna.gc.pauses", "Pauses of all threads for the garbage collector.", "{pause}"),
            static () => GcPauses.Shared.Count);
        meter.Gauge(
            new("kahuna.gc.pause.longest", "The longest of these pauses since the start.", "s"),
            static () => GcPauses.Shared.Longest.TotalSeconds);
    }

    private static void AddWatches(NodeMeter meter, WatchHub watches)
    {
        meter.Gauge(new("kahuna.watches", "Watches.", "{watch}"), () => watches.Memory.Watches);
        meter.Gauge(new("kahuna.watches.size", "Memory of the watches.", "By"), () => watches.Memory.Bytes);
        meter.Gauge(new("kahuna.watches.streams", "Open streams of watches.", "{stream}"), () => watches.Streams);
        meter.Gauge(
            new("kahuna.watches.history", "Memory of the changes that watches can go back to.", "By"),
            () => watches.ChangeBytes);
        meter.Counter(
            new("kahuna.watches.losses", "How often a stream was told that changes are missing.", "{loss}"),
            () => watches.Memory.Losses);
        meter.Gauge(
            new("kahuna.watches.blocked", "Streams that wait because their callers do not read.", "{stream}"),
            () => watches.Blocked.Streams);
        meter.Gauge(
            new("kahuna.watches.lag", "How long the longest of these streams has waited.", "s"),
            () => watches.Blocked.LongestMs / 1000.0);
    }
}
