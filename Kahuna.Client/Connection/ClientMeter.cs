using System.Diagnostics.Metrics;
using System.Text;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Connection;

/// <summary>
/// The metrics of all clients of the process, as the meter <c>Kahuna.Client</c> (docs/metrics.md). While nobody
/// listens to them, an operation costs one look at a flag. Stateless but for the list of clients; any thread.
/// </summary>
internal static class ClientMeter
{
    /// <summary>The name of the meter.</summary>
    public const string Name = "Kahuna.Client";

    private static readonly Meter s_meter = new(Name, typeof(ClientMeter).Assembly.GetName().Version?.ToString(3));
    private static readonly List<WeakReference<ClusterConnection>> s_connections = [];

    private static readonly Histogram<double>? s_durations = TryMake(static () => s_meter.CreateHistogram(
        "kahuna.client.operation.duration",
        "s",
        "Time from the start of an operation until its result, retries and waits for locks included.",
        tags: null,
        new InstrumentAdvice<double>
        {
            // 100 microseconds to 26 seconds, each bound twice the one before.
            HistogramBucketBoundaries = [.. Enumerable.Range(0, 19).Select(static power => 0.0001 * (1 << power))],
        }));

    private static readonly Counter<long>? s_retries = TryMake(static () => s_meter.CreateCounter<long>(
        "kahuna.client.operation.retries", "{attempt}", "Attempts after the first one."));

    private static readonly Counter<long>? s_moves = TryMake(static () => s_meter.CreateCounter<long>(
        "kahuna.client.operation.moves", "{attempt}", "Attempts that followed a change of leaders to another node."));

    static ClientMeter()
    {
        TryMake(static () => s_meter.CreateObservableGauge(
            "kahuna.client.streams",
            static () => Sum(static connection => connection.OpenStreams),
            "{stream}",
            "Streams to nodes that are ready."));
        TryMake(static () => s_meter.CreateObservableGauge(
            "kahuna.client.operations.pending",
            static () => Sum(static connection => connection.Pending),
            "{operation}",
            "Operations that have begun and not ended."));
    }

    /// <summary>Somebody wants to know how long operations take.</summary>
    public static bool IsTimed => s_durations is { Enabled: true };

    /// <summary>
    /// Makes an instrument. Null: a listener of the application failed when it was told of it. The instrument is then
    /// missing; without this, each later use of the client would fail, because its type could not be initialized.
    /// </summary>
    internal static T? TryMake<T>(Func<T> make)
        where T : Instrument
    {
        try
        {
            return make();
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            return null;
        }
    }

    /// <summary>A client begins. It is forgotten when it is collected.</summary>
    public static void Add(ClusterConnection connection)
    {
        lock (s_connections)
        {
            s_connections.RemoveAll(static known => !known.TryGetTarget(out _));
            s_connections.Add(new WeakReference<ClusterConnection>(connection));
        }
    }

    /// <summary>A client has ended.</summary>
    public static void Remove(ClusterConnection connection)
    {
        lock (s_connections)
        {
            s_connections.RemoveAll(known => !known.TryGetTarget(out ClusterConnection? target)
                || target == connection);
        }
    }

    /// <summary>An operation is sent again.</summary>
    /// <param name="kind">The operation.</param>
    /// <param name="isMove">It goes to another node because the leader has changed.</param>
    public static void Retried(CommandKind kind, bool isMove)
    {
        if (s_retries is not { Enabled: true } && s_moves is not { Enabled: true })
        {
            return;
        }

        KeyValuePair<string, object?> operation = new("kahuna.operation", NameOf(kind));
        try
        {
            s_retries?.Add(1, operation);
            if (isMove)
            {
                s_moves?.Add(1, operation);
            }
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // A listener of the application has failed; its operations must not.
        }
    }

    /// <summary>An operation has ended.</summary>
    /// <param name="request">The operation.</param>
    /// <param name="failure">Why it failed; null: it did not.</param>
    /// <param name="time">How long it took.</param>
    public static void Ended(in OperationRequest request, Exception? failure, TimeSpan time)
    {
        try
        {
            s_durations?.Record(
                time.TotalSeconds,
                new KeyValuePair<string, object?>("kahuna.operation", NameOf(request.Kind)),
                new KeyValuePair<string, object?>(
                    "kahuna.durability", request.Durability == Durability.Ephemeral ? "ephemeral" : "persistent"),
                new KeyValuePair<string, object?>("kahuna.outcome", OutcomeOf(failure)));
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // As above.
        }
    }

    /// <summary>How an operation ended, as metrics and traces name it.</summary>
    public static string OutcomeOf(Exception? failure) => failure switch
    {
        null => "ok",
        KahunaException known => Snake(known.Code.ToString()),
        OperationCanceledException => "canceled",
        _ => "failed",
    };

    /// <summary>An operation, as metrics and traces name it.</summary>
    public static string NameOf(CommandKind kind) => CommandKinds.Of(kind).Name.Replace(' ', '_');

    private static string Snake(string name)
    {
        StringBuilder text = new();
        foreach (char letter in name)
        {
            if (char.IsAsciiLetterUpper(letter) && text.Length > 0)
            {
                text.Append('_');
            }

            text.Append(char.ToLowerInvariant(letter));
        }

        return text.ToString();
    }

    private static long Sum(Func<ClusterConnection, long> read)
    {
        ClusterConnection[] connections;
        lock (s_connections)
        {
            connections =
            [
                .. s_connections.Select(static known =>
                    known.TryGetTarget(out ClusterConnection? target) ? target : null).OfType<ClusterConnection>(),
            ];
        }

        return connections.Sum(read);
    }
}
