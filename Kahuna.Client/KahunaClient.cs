using Kahuna.Client.Administration;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.Elections;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Scripts;
using Kahuna.Client.Sequences;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Client;

/// <summary>
/// A client of one Kahuna cluster. Create one per application and share it: any thread, any number of concurrent calls.
/// <para>
/// It keeps one stream to each node and sends every operation to the leader of its key. It follows leader changes and
/// reconnects by itself. Dispose it at the end.
/// </para>
/// </summary>
public sealed class KahunaClient : IAsyncDisposable
{
    private readonly ClusterConnection _connection;
    private readonly LeaseKeeper _leases;
    private readonly Acquirer _acquirer;
    private readonly ClientWatches _watches;

    /// <summary>Creates a client. No I/O takes place before the first operation.</summary>
    /// <param name="options">The cluster's endpoints, timeouts and limits; read once.</param>
    /// <param name="loggerFactory">Receives connection events, but no operations; null for none.</param>
    /// <exception cref="ArgumentException">An option is invalid; the message lists every reason.</exception>
    public KahunaClient(KahunaClientOptions options, ILoggerFactory? loggerFactory = null)
        : this(
            Checked(options, []),
            ConnectionPorts.ForNetwork(options.ToSettings()),
            loggerFactory ?? NullLoggerFactory.Instance)
    {
    }

    /// <summary>As the public constructor, over the given ports: for tests and simulations.</summary>
    internal KahunaClient(KahunaClientOptions options, ConnectionPorts ports, ILoggerFactory loggerFactory)
    {
        Checked(options, []);
        ILogger logger = new QuietLogger(loggerFactory.CreateLogger("Kahuna.Client"), ports.Time);
        ConnectionSettings settings = options.ToSettings();
        _connection = new ClusterConnection(settings, ports, logger);
        _watches = new ClientWatches(_connection, settings, ports, logger);
        LockOperations calls = new(_connection, ports, options.MaxInFlight, logger);
        _leases = new LeaseKeeper(calls);
        Acquirer acquirer = _acquirer = new Acquirer(calls, _leases);
        TransactionCoordinator coordinator = new(_connection, ports);
        KeyValues = new KeyValueClient(_connection, _watches, new BatchCalls(coordinator), options.Durability);
        Sequences = new SequenceClient(_connection, ports.Time);
        Transactions = new TransactionClient(coordinator, KeyValues, Sequences, options.Durability);
        Scripts = new ScriptClient(coordinator);
        Locks = new LockClient(acquirer, options.Durability);
        Semaphores = new SemaphoreClient(acquirer, options.Durability);
        Elections = new ElectionClient(acquirer, options.Durability);
        Admin = new AdminClient(_connection, ports.Channel);
    }

    /// <summary>Key/value operations: set, get, exists, delete, extend, increment.</summary>
    public KeyValueClient KeyValues { get; }

    /// <summary>Transactions on keys: conditions and operations that take effect together.</summary>
    public TransactionClient Transactions { get; }

    /// <summary>Scripts: small programs that run next to the data, each as one transaction.</summary>
    public ScriptClient Scripts { get; }

    /// <summary>Sequences of unique numbers without gaps: create, next, reserve, get, update, delete, list.</summary>
    public SequenceClient Sequences { get; }

    /// <summary>Locks with leases, queues and fencing tokens: acquire, extend, release, get, list.</summary>
    public LockClient Locks { get; }

    /// <summary>Semaphores: locks that a limited number of owners hold at the same time.</summary>
    public SemaphoreClient Semaphores { get; }

    /// <summary>Leader elections: campaign, observe, resign.</summary>
    public ElectionClient Elections { get; }

    /// <summary>Who may do what: users, roles, tokens.</summary>
    public AdminClient Admin { get; }

    /// <summary>Creates a client for a list of endpoints. No I/O takes place before the first operation.</summary>
    /// <param name="endpoints">
    /// Comma-separated: <c>https://a:8082,https://b:8084</c>. One reachable node is enough. Credentials may follow
    /// after a ';', as <see cref="KahunaCredentials.Parse"/> reads them:
    /// <c>https://a:8082;user=app;password-file=/run/secrets/kahuna</c>.
    /// </param>
    /// <param name="configure">Sets further options; null for the defaults.</param>
    /// <exception cref="ArgumentException">
    /// An endpoint or option is invalid; the message lists every reason.
    /// </exception>
    public static KahunaClient Connect(string endpoints, Action<KahunaClientOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        KahunaClientOptions options = new();
        List<string> errors = [];
        string[] parts = endpoints.Split(';', 2);
        options.Endpoints.Add(parts[0], errors);
        if (parts.Length > 1 && parts[1].AsSpan().Trim().Length > 0)
        {
            options.Credentials = CredentialsIn(parts[1], errors);
        }

        configure?.Invoke(options);
        return new KahunaClient(Checked(options, errors));
    }

    /// <summary>The watches of the client.</summary>
    internal ClientWatches Watches => _watches;

    /// <summary>The version of the known map of slots; 0 while none is known.</summary>
    internal ulong SlotMapVersion => _connection.SlotMapVersion;

    /// <summary>
    /// Describes the cluster as the connected nodes report it: identity, nodes and partition leaders. One reachable
    /// node is enough, so the result does not show that the cluster serves requests; see <see cref="CheckAsync"/>.
    /// </summary>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.Unavailable"/>: no node could be reached within
    /// <see cref="KahunaClientOptions.ConnectTimeout"/>; the message says why. <see cref="KahunaErrorCode.Untrusted"/>:
    /// no server certificate is trusted.
    /// </exception>
    public ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct = default) => _connection.DescribeAsync(ct);

    /// <summary>
    /// Checks that the cluster serves requests: each partition of each durability must answer a read, which takes its
    /// leader and a majority of the nodes. For health checks; it changes nothing.
    /// </summary>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// A partition did not answer within the request timeout, or no node could be reached.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask CheckAsync(CancellationToken ct = default) => ClusterCheck.RunAsync(_connection, ct);

    /// <summary>
    /// Closes the client and all its streams, within 3 seconds. Pending operations fail with
    /// <see cref="KahunaErrorCode.ClientDisposed"/>, later ones with <see cref="ObjectDisposedException"/>.
    /// <para>
    /// Handles of held locks are lost at once; the cluster frees these locks when their leases end. Dispose the handles
    /// first to free them earlier. Places in queues are given up for at most 1 second while no node answers. Streams
    /// whose readers run blocking code (<see cref="KahunaClientOptions.AllowSynchronousContinuations"/>) delay the end
    /// by at most 2 seconds.
    /// </para>
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        _leases.Dispose();
        Task watches = _watches.StopAsync();
        await _acquirer.CloseAsync().ConfigureAwait(_connection.CapturesContext);
        await _connection.DisposeAsync(watches).ConfigureAwait(_connection.CapturesContext);
    }

    private static KahunaCredentials? CredentialsIn(string text, List<string> errors)
    {
        try
        {
            return KahunaCredentials.Parse(text);
        }
        catch (FormatException refused)
        {
            errors.Add($"{nameof(KahunaClientOptions.Credentials)}: {refused.Message}");
            return null;
        }
    }

    private static KahunaClientOptions Checked(KahunaClientOptions options, List<string> errors)
    {
        ArgumentNullException.ThrowIfNull(options);
        options.Check(errors);
        return errors.Count == 0
            ? options
            : throw new ArgumentException(
                $"The client's options cannot be used: {string.Join("; ", errors)}.", nameof(options));
    }
}
