using System.Globalization;
using System.Text.Json;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Kahuna.Server.Observability;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Protos;

namespace Kahuna.Server.Hosting;

/// <summary>
/// <c>GET /status</c>: the node's state as JSON for operators and scripts. It has identity, readiness, each partition's
/// role, term, leader, indexes and state, the sizes of the log, watches, and the memory of the process. Stateless.
/// </summary>
internal static class StatusEndpoint
{
    /// <summary>Names of the heap's generations, in the runtime's order.</summary>
    private static readonly string[] s_generations = ["0", "1", "2", "large", "pinned"];

    /// <summary>Adds it.</summary>
    /// <param name="app">The node's web server.</param>
    /// <param name="render">Renders the present state.</param>
    public static void Map(IEndpointRouteBuilder app, Func<byte[]> render) =>
        app.MapGet("/status", context =>
        {
            context.Response.ContentType = "application/json";
            return PatientAnswer.SendAsync(context, render());
        });

    /// <summary>Renders the present state.</summary>
    internal static byte[] Render(
        ClusterView view,
        Func<int, PartitionMetrics> figures,
        NodeStorage storage,
        (long Persistent, long Ephemeral) memory,
        WatchHub watches,
        Action<Utf8JsonWriter>? more = null)
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
            json.WriteNumber("featureLevel", cluster.FeatureLevel);
            json.WriteNumber("processId", Environment.ProcessId);
            json.WriteBoolean("ready", ready);
            json.WriteString("reason", reason);
            json.WriteStartArray("partitions");
            foreach (PartitionLeader partition in cluster.Partitions)
            {
                json.WriteStartObject();
                WriteGroup(
                    json, partition, figures((int)partition.Partition), view.FailureOf((int)partition.Partition));
                json.WriteEndObject();
            }

            json.WriteEndArray();
            json.WriteStartArray("ephemeralPartitions");
            foreach (PartitionLeader partition in cluster.EphemeralPartitions)
            {
                json.WriteStartObject();
                int index = view.Layout.IndexOf((int)partition.Partition, isEphemeral: true);
                WriteEphemeralGroup(json, partition, figures(index), view.FailureOf(index));
                json.WriteEndObject();
            }

            json.WriteEndArray();
            json.WriteNumber("persistentBytes", memory.Persistent);
            json.WriteNumber("ephemeralBytes", memory.Ephemeral);
            json.WriteStartObject("storage");
            json.WriteString("stateStore", StateStoreSelection.NameOf(storage.Kind));
            json.WriteNumber("logBytes", storage.Log.Bytes);
            json.WriteNumber("logSegments", storage.Log.Segments);
            json.WriteEndObject();
            WriteWatches(json, watches);
            more?.Invoke(json);
            WriteCollector(json);
            json.WriteEndObject();
        }

        return stream.ToArray();
    }

    private static void WriteWatches(Utf8JsonWriter json, WatchHub watches)
    {
        json.WriteStartObject("watches");
        json.WriteNumber("streams", watches.Streams);
        json.WriteNumber("watches", watches.Memory.Watches);
        json.WriteNumber("bytes", watches.Memory.Bytes);
        json.WriteNumber("historyBytes", watches.ChangeBytes);
        json.WriteNumber("losses", watches.Memory.Losses);
        json.WriteEndObject();
    }

    private static void WriteCollector(Utf8JsonWriter json)
    {
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
        GCMemoryInfo latest = GC.GetGCMemoryInfo();
        json.WriteNumber("committedBytes", latest.TotalCommittedBytes);
        json.WriteStartArray("generations");
        for (int i = 0; i < latest.GenerationInfo.Length; i++)
        {
            json.WriteStartObject();
            json.WriteString("name", s_generations[i]);
            json.WriteNumber("bytes", latest.GenerationInfo[i].SizeAfterBytes);
            json.WriteNumber("freeBytes", latest.GenerationInfo[i].FragmentationAfterBytes);
            json.WriteEndObject();
        }

        json.WriteEndArray();
        json.WriteNumber("workingSetBytes", Environment.WorkingSet);
        json.WriteEndObject();
    }

    private static void WriteEphemeralGroup(
        Utf8JsonWriter json, PartitionLeader partition, PartitionMetrics figures, string? failure)
    {
        WriteGroup(json, partition, figures, failure);
        json.WriteNumber("epoch", partition.Epoch);
        json.WriteNumber("evicted", figures.Evicted);
    }

    private static void WriteGroup(
        Utf8JsonWriter json, PartitionLeader partition, PartitionMetrics figures, string? failure)
    {
        json.WriteNumber("partition", partition.Partition);
        json.WriteString("role", partition.Role);
        json.WriteNumber("term", partition.Term);
        json.WriteNumber("leader", partition.LeaderNodeId);
        json.WriteNumber("commitIndex", partition.CommitIndex);
        json.WriteNumber("appliedIndex", figures.Applied.Value);
        json.WriteString("digest", figures.Digest.ToString("x16", CultureInfo.InvariantCulture));
        json.WriteNumber("keys", figures.Keys);
        json.WriteNumber("storedIndex", figures.Stored.Value);
        json.WriteNumber("logStart", figures.LogStart.Value);
        json.WriteBoolean("mayVote", figures.MayVote);
        json.WriteBoolean("logStalled", figures.IsStalled);
        json.WriteString("stopped", failure);
        json.WriteStartObject("sessions");
        json.WriteNumber("count", figures.Sessions.Count);
        json.WriteNumber("bytes", figures.Sessions.Bytes);
        json.WriteNumber("repeats", figures.Sessions.Repeats);
        json.WriteNumber("refusals", figures.Sessions.Refusals);
        json.WriteNumber("forgotten", figures.Sessions.Forgotten);
        json.WriteEndObject();
        json.WriteStartObject("locks");
        json.WriteNumber("held", figures.Locks.Held);
        json.WriteNumber("waiting", figures.Locks.Waiting);
        json.WriteNumber("expired", figures.Locks.Expired);
        json.WriteEndObject();
        json.WriteStartObject("transactions");
        json.WriteNumber("prepared", figures.Prepared.Parts);
        json.WriteNumber("heldKeys", figures.Prepared.Keys);
        json.WriteNumber("undecided", figures.Prepared.Undecided);
        json.WriteNumber("decided", figures.Prepared.Decided);
        json.WriteNumber("holding", figures.Holds.Transactions);
        json.WriteNumber("holds", figures.Holds.Keys);
        json.WriteNumber("waiting", figures.Holds.Waiting);
        json.WriteEndObject();
    }
}
