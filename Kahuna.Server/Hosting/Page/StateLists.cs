using System.Globalization;
using System.Text;
using System.Text.Json;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// Lists of the state for the page that no other call has: sessions, from this node's own copy of the state, which may
/// lag behind the leader's, and the queue of a lock. One list is made at a time, however many callers there are. Owned
/// by the node's page; any thread.
/// </summary>
/// <param name="view">The cluster.</param>
/// <param name="loops">The partitions.</param>
/// <param name="time">The clock.</param>
internal sealed class StateLists(ClusterView view, LoopSet loops, TimeProvider time) : IDisposable
{
    /// <summary>Most waiters of a queue that are told, and sessions of a page.</summary>
    internal const int WaitersMax = 1000;
    internal const int SessionsMax = 100;

    /// <summary>Looks at groups for one page of sessions: bounded work per request.</summary>
    private const int LooksMax = 16;

    /// <summary>How long a caller waits for its turn, and for a loop.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(5);

    /// <summary>How long the leader may take to answer.</summary>
    private static readonly TimeSpan s_leaderPatience = TimeSpan.FromSeconds(1);

    private readonly SemaphoreSlim _turn = new(1);

    /// <summary>What asks each of the other nodes for the queue of a lock.</summary>
    public IReadOnlyDictionary<NodeId, PeerStatus> Others { get; init; } = new Dictionary<NodeId, PeerStatus>();

    /// <inheritdoc/>
    public void Dispose() => _turn.Dispose();

    /// <summary>
    /// A page of the sessions of all groups. <c>prefix</c>: how the session begins, in hexadecimal; <c>pageToken</c>:
    /// where the page begins.
    /// </summary>
    /// <exception cref="FormatException">The page token is none of a former page.</exception>
    /// <exception cref="TimeoutException">Others are in the way, or the node stops.</exception>
    public async Task<byte[]> SessionsAsync(HttpRequest request)
    {
        string prefix = request.Query["prefix"].ToString();
        (int group, Row from) = ParseToken(request.Query["pageToken"].ToString());
        using MemoryStream stream = new();
        using Utf8JsonWriter json = new(stream);
        json.WriteStartObject();
        json.WriteStartArray("sessions");
        int left = SessionsMax;
        await InTurnAsync(async () =>
        {
            for (int looks = 0; group < GroupsCount && left > 0 && looks < LooksMax; looks++)
            {
                SessionInspection inspection = new(group, from, left);
                await LookAsync(inspection).ConfigureAwait(false);
                foreach (SessionSnapshot session in inspection.Found.Sessions)
                {
                    left -= Write(json, session, group, prefix) ? 1 : 0;
                }

                from = inspection.Found.Next;
                group += from.IsNone ? 1 : 0;
            }
        }).ConfigureAwait(false);
        json.WriteEndArray();
        json.WriteString("nextPageToken", group < GroupsCount ? $"{group}.{from}" : "");
        json.WriteEndObject();
        await json.FlushAsync().ConfigureAwait(false);
        return stream.ToArray();
    }

    /// <summary>
    /// The queue of the lock <c>resource</c> of a <c>durability</c>, from the leader of its partition; if that does not
    /// answer, from this node's copy.
    /// </summary>
    /// <exception cref="FormatException">There is no such lock or durability.</exception>
    /// <exception cref="TimeoutException">Others are in the way, or the node stops.</exception>
    public async Task<byte[]> QueueAsync(HttpRequest request)
    {
        (int group, byte[] name) = ParseLock(request);
        NodeId leader = view.Status(group).Leader;
        byte[]? answer = null;
        if (leader != view.Identity.Self && Others.TryGetValue(leader, out PeerStatus? other))
        {
            string query = $"?resource={Uri.EscapeDataString(Encoding.UTF8.GetString(name))}"
                + $"&durability={Uri.EscapeDataString(request.Query["durability"].ToString())}";
            await InTurnAsync(async () => answer = await TryAskAsync(other, query).ConfigureAwait(false))
                .ConfigureAwait(false);
        }

        return answer ?? await OwnQueueAsync(request).ConfigureAwait(false);
    }

    /// <summary>As <see cref="QueueAsync"/>, from this node's copy of the state.</summary>
    /// <exception cref="FormatException">There is no such lock or durability.</exception>
    /// <exception cref="TimeoutException">Others are in the way, or the node stops.</exception>
    public async Task<byte[]> OwnQueueAsync(HttpRequest request)
    {
        (int group, byte[] name) = ParseLock(request);
        QueueInspection inspection = new(group, name, WaitersMax);
        await InTurnAsync(() => LookAsync(inspection)).ConfigureAwait(false);
        LockQueue queue = inspection.Found;
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            json.WriteStartObject();
            json.WriteNumber("nodeId", view.Identity.Self.Value);
            json.WriteNumber("holders", queue.Holders);
            json.WriteNumber("waiters", queue.Waiters);
            json.WriteStartArray("queue");
            foreach ((LockWaiter waiter, long? waitedMs) in queue.First.Zip(inspection.WaitedMs))
            {
                Write(json, waiter, waitedMs);
            }

            json.WriteEndArray();
            json.WriteEndObject();
        }

        return stream.ToArray();
    }

    private static void Write(Utf8JsonWriter json, LockWaiter waiter, long? waitedMs)
    {
        json.WriteStartObject();
        json.WriteString("token", waiter.Token.Value.ToString(CultureInfo.InvariantCulture));
        json.WriteString("owner", waiter.Owner);
        json.WriteString("mode", waiter.Mode switch
        {
            LockMode.Exclusive => "exclusive",
            LockMode.Shared => "shared",
            _ => "semaphore",
        });
        if (waitedMs is { } waited)
        {
            json.WriteNumber("waitedMs", waited);
        }

        json.WriteNumber("leftMs", waiter.LeftMs);
        json.WriteNumber("leaseMs", waiter.LeaseMs);
        json.WriteEndObject();
    }

    private async Task<byte[]?> TryAskAsync(PeerStatus other, string query)
    {
        using CancellationTokenSource patience = new(s_leaderPatience, time);
        try
        {
            return await other.AskAsync(query, patience.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (PeerStatus.ProblemOf(error) is not null)
        {
            // This node's copy is better than nothing.
            return null;
        }
    }

    private (int Group, byte[] Name) ParseLock(HttpRequest request)
    {
        bool isEphemeral = request.Query["durability"].ToString() switch
        {
            "" or "DURABILITY_PERSISTENT" => false,
            "DURABILITY_EPHEMERAL" => true,
            _ => throw new FormatException("durability: not DURABILITY_PERSISTENT or DURABILITY_EPHEMERAL."),
        };
        byte[] name = Encoding.UTF8.GetBytes(request.Query["resource"].ToString());
        return name.Length is 0 or > Wire.Limits.KeyBytesMax
            ? throw new FormatException($"resource: a lock has a name of 1 to {Wire.Limits.KeyBytesMax} bytes.")
            : (loops.Layout.IndexOf(view.Slots.PartitionOf(name), isEphemeral), name);
    }

    /// <summary>Groups that have sessions of clients: all but the last one, which is the meta group.</summary>
    private int GroupsCount => loops.Layout.Count - 1;

    private bool Write(Utf8JsonWriter json, in SessionSnapshot session, int group, string prefix)
    {
        string id = session.Id.ToString("x16", CultureInfo.InvariantCulture);
        if (!id.StartsWith(prefix, StringComparison.OrdinalIgnoreCase))
        {
            return false;
        }

        json.WriteStartObject();
        json.WriteString("id", id);
        json.WriteBoolean("isIdempotencyKey", session.IsIdempotencyKey);
        json.WriteNumber("partition", loops.Layout.PartitionOf(group));
        json.WriteString("durability", group < loops.Layout.Partitions ? "persistent" : "ephemeral");
        json.WriteNumber("idleMs", session.IdleMs);
        json.WriteNumber("leftMs", session.LeftMs);
        json.WriteNumber("calls", session.Calls);
        json.WriteNumber("bytes", session.Bytes);
        json.WriteEndObject();
        return true;
    }

    private async Task InTurnAsync(Func<Task> make)
    {
        if (!await _turn.WaitAsync(s_patience).ConfigureAwait(false))
        {
            throw new TimeoutException("Other lists are being made; try again.");
        }

        try
        {
            await make().ConfigureAwait(false);
        }
        finally
        {
            _turn.Release();
        }
    }

    private async Task LookAsync(Inspection inspection)
    {
        if (!loops.TryInspect(inspection.GroupIndex, inspection.Look))
        {
            throw new TimeoutException("The node is stopping.");
        }

        try
        {
            await inspection.Ended.WaitAsync(s_patience, time).ConfigureAwait(false);
        }
        catch (TimeoutException)
        {
            throw new TimeoutException("The partition has too much to do now; try again.");
        }
    }

    private (int Group, Row From) ParseToken(string token)
    {
        if (token.Length == 0)
        {
            return (0, Row.First);
        }

        return token.Split('.') is [var group, var row]
            && int.TryParse(group, NumberStyles.None, CultureInfo.InvariantCulture, out int index)
            && int.TryParse(row, NumberStyles.None, CultureInfo.InvariantCulture, out int from)
            && index < GroupsCount
                ? (index, new Row(from))
                : throw new FormatException("pageToken: not one of a former page.");
    }
}
