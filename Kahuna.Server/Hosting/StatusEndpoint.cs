using System.Diagnostics;
using System.Text.Json;
using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Observability;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>GET /status</c>: the node as operators and scripts want to see it, as JSON: identity, readiness, each partition's
/// role, term, leader and commit index, and what the process weighs. Stateless.
/// </summary>
internal static class StatusEndpoint
{
    public static void Map(IEndpointRouteBuilder app, ClusterView view) =>
        app.MapGet("/status", context =>
        {
            context.Response.ContentType = "application/json";
            return context.Response.Body.WriteAsync(Render(view)).AsTask();
        });

    private static byte[] Render(ClusterView view)
    {
        DescribeClusterResponse cluster = view.Describe();
        bool ready = view.IsReady(out string reason);
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream, new JsonWriterOptions { Indented = true }))
        {
            json.WriteStartObject();
            json.WriteNumber("nodeId", cluster.NodeId);
            json.WriteString("clusterId", cluster.ClusterId);
            json.WriteString("version", cluster.ServerVersion);
            json.WriteNumber("processId", Environment.ProcessId);
            json.WriteBoolean("ready", ready);
            json.WriteString("reason", reason);
            json.WriteStartArray("partitions");
            foreach (PartitionLeader partition in cluster.Partitions)
            {
                json.WriteStartObject();
                json.WriteNumber("partition", partition.Partition);
                json.WriteString("role", partition.Role);
                json.WriteNumber("term", partition.Term);
                json.WriteNumber("leader", partition.LeaderNodeId);
                json.WriteNumber("commitIndex", partition.CommitIndex);
                json.WriteEndObject();
            }

            json.WriteEndArray();
            json.WriteStartObject("gc");
            json.WriteNumber("pauses", GcPauses.Shared.Count);
            json.WriteNumber("longestPauseMs", Math.Round(GcPauses.Shared.Longest.TotalMilliseconds, 3));
            json.WriteStartArray("latestPausesMs");
            foreach (TimeSpan pause in GcPauses.Shared.Latest())
            {
                json.WriteNumberValue(Math.Round(pause.TotalMilliseconds, 3));
            }

            json.WriteEndArray();
            json.WriteNumber("heapBytes", GC.GetTotalMemory(false));
            using (Process self = Process.GetCurrentProcess())
            {
                json.WriteNumber("workingSetBytes", self.WorkingSet64);
            }

            json.WriteEndObject();
            json.WriteEndObject();
        }

        return stream.ToArray();
    }
}
