using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Client;

/// <summary>
/// A client of one Kahuna cluster. Make one for the life of the application and share it: any thread, any number of calls
/// at a time. It keeps one stream to each node, sends every operation to the node that leads its key, follows leader
/// changes and reconnects by itself. Dispose it at the end.
/// </summary>
public sealed class KahunaClient : IAsyncDisposable
{
    private readonly ClusterConnection _connection;
    private readonly LeaseKeeper _leases;
    private readonly Acquirer _acquirer;

    /// <summary>Makes a client. No I/O takes place before the first operation.</summary>
    /// <param name="options">Where the cluster is and how long to try; read once.</param>
    /// <param name="loggerFactory">Receives connection events, not operations; null for none.</param>
    /// <exception cref="ArgumentException">The options cannot be used; the message lists every reason.</exception>
    public KahunaClient(KahunaClientOptions options, ILoggerFactory? loggerFactory = null)
        : this(Checked(options, []), ConnectionPorts.ForNetwork(options), loggerFactory ?? NullLoggerFactory.Instance)
    {
    }

    /// <summary>As the public constructor, over given ports: what tests and simulations use.</summary>
    internal KahunaClient(KahunaClientOptions options, ConnectionPorts ports, ILoggerFactory loggerFactory)
    {
        Checked(options, []);
        ILogger logger = new QuietLogger(loggerFactory.CreateLogger("Kahuna.Client"));
        _connection = new ClusterConnection(ConnectionSettings.From(options), ports, logger);
        LockCalls calls = new(_connection, ports, options.MaxInFlight, logger);
        _leases = new LeaseKeeper(calls);
        Acquirer acquirer = _acquirer = new Acquirer(calls, _leases);
        KeyValues = new KeyValues.KeyValues(_connection, options.Durability);
        Sequences = new Sequences.Sequences(_connection, ports.Time);
        Locks = new Locks.Locks(acquirer, options.Durability);
        Semaphores = new Semaphores(acquirer, options.Durability);
        Elections = new Elections.Elections(acquirer, options.Durability);
    }

    /// <summary>Set, get, exists, delete, extend, increment.</summary>
    public KeyValues.KeyValues KeyValues { get; }

    /// <summary>Numbers without duplicates and gaps: create, next, reserve, get, update, delete, list.</summary>
    public Sequences.Sequences Sequences { get; }

    /// <summary>Locks with leases, queues and fencing tokens: acquire, extend, release, get, list.</summary>
    public Locks.Locks Locks { get; }

    /// <summary>Locks that a given number may hold together.</summary>
    public Semaphores Semaphores { get; }

    /// <summary>One leader out of many candidates: campaign, observe, resign.</summary>
    public Elections.Elections Elections { get; }

    /// <summary>Makes a client for a list of endpoints. No I/O takes place before the first operation.</summary>
    /// <param name="endpoints">Comma-separated: <c>https://a:8082,https://b:8084</c>. One that answers is enough.</param>
    /// <param name="configure">Sets further options; null for the defaults.</param>
    /// <exception cref="ArgumentException">An endpoint or option cannot be used; the message lists every reason.</exception>
    public static KahunaClient Connect(string endpoints, Action<KahunaClientOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(endpoints);
        KahunaClientOptions options = new();
        List<string> errors = [];
        options.Endpoints.Add(endpoints, errors);
        configure?.Invoke(options);
        return new KahunaClient(Checked(options, errors));
    }

    /// <summary>
    /// Describes the cluster: its identity, nodes, and the leaders of its partitions, as the connected nodes report them. One node that answers is
    /// enough, so this says nothing about whether the cluster serves requests: <see cref="CheckAsync"/> does.
    /// </summary>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.Unavailable"/>: no node could be reached within <see cref="KahunaClientOptions.ConnectTimeout"/>; the message says why.
    /// <see cref="KahunaErrorCode.Untrusted"/>: no server's certificate is trusted.
    /// </exception>
    public ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct = default) => _connection.DescribeAsync(ct);

    /// <summary>
    /// Checks that the cluster serves requests: every partition, of both durabilities, has to answer a read, which takes its leader and a majority of the
    /// nodes. For health checks; it changes nothing.
    /// </summary>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">A partition did not answer until the request timeout, or no node could be reached.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask CheckAsync(CancellationToken ct = default) => ClusterCheck.RunAsync(_connection, ct);

    /// <summary>
    /// Closes all streams. Operations under way end with <see cref="KahunaErrorCode.ClientDisposed"/>, later ones with <see cref="ObjectDisposedException"/>. Locks that are still held are lost: their holders
    /// are told at once, and the cluster gives them to others when their leases have ended. Dispose the handles first. Places in queues are given back before. Ends within 3 seconds, whatever the cluster and
    /// the application's own code do: one for places in queues while no node answers, and two for streams whose readers run code that blocks (<see cref="KahunaClientOptions.AllowSynchronousContinuations"/>).
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        _leases.Dispose();
        await _acquirer.CloseAsync().ConfigureAwait(_connection.CapturesContext);
        await _connection.DisposeAsync().ConfigureAwait(_connection.CapturesContext);
    }

    private static KahunaClientOptions Checked(KahunaClientOptions options, List<string> errors)
    {
        ArgumentNullException.ThrowIfNull(options);
        options.Check(errors);
        return errors.Count == 0 ? options : throw new ArgumentException($"The client's options cannot be used: {string.Join("; ", errors)}.", nameof(options));
    }
}
