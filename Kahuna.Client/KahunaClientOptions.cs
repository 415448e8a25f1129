using Kahuna.Client.Connection;
using Kahuna.Client.Connection.Access;
using Kahuna.Wire;

namespace Kahuna.Client;

/// <summary>
/// Options of a <see cref="KahunaClient"/>: endpoints, trust, timeouts and limits. Read once when the client is
/// created; later changes have no effect. Invalid options make the creation fail with one
/// <see cref="ArgumentException"/> that lists all of them.
/// </summary>
public sealed class KahunaClientOptions
{
    private const int WaitingMax = 10_000_000;

    /// <summary>
    /// One or more nodes of the cluster, <c>https://host:port</c>. One reachable node is enough; the client learns the
    /// others from it. In configuration: a list, or one comma-separated text.
    /// </summary>
    public EndpointList Endpoints { get; set; } = [];

    /// <summary>
    /// The time limit of one operation, including retries: 1 ms to 5 minutes. Default 10 s. The wait for a lock comes
    /// on top: an acquire ends within its wait plus one request timeout.
    /// </summary>
    public TimeSpan RequestTimeout { get; set; } = TimeSpan.FromSeconds(10);

    /// <summary>
    /// The time limit of one attempt to connect to a node, and of <see cref="KahunaClient.DescribeAsync"/>'s wait for
    /// the first node: 1 ms to 5 minutes. Default 5 s.
    /// </summary>
    public TimeSpan ConnectTimeout { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>
    /// A file of PEM certificates; only servers whose certificate chains to one of them are trusted. A changed file is
    /// read at the next connection. Null: the machine's trusted roots and, for loopback endpoints, the development
    /// authority of a local server.
    /// </summary>
    public string? TrustedCaFile { get; set; }

    /// <summary>
    /// Accepts any server certificate. Traffic is encrypted, but anybody who can intercept it can read and change it.
    /// Default false.
    /// </summary>
    public bool Insecure { get; set; }

    /// <summary>
    /// Says who the client is, to a cluster that requires it. In configuration: a text, as
    /// <see cref="KahunaCredentials.Parse"/> reads it. Null: nobody.
    /// </summary>
    public KahunaCredentials? Credentials { get; set; }

    /// <summary>The durability of calls that name none. Default <see cref="Durability.Persistent"/>.</summary>
    public Durability Durability { get; set; } = Durability.Persistent;

    /// <summary>
    /// The most operations in flight to one node: 1 to 16,384. Further ones wait within their own timeout. Default
    /// 8,192.
    /// </summary>
    public int MaxInFlight { get; set; } = 8192;

    /// <summary>
    /// Runs the code after an <c>await</c> on the thread that received the reply, which saves a thread switch per
    /// operation. Only for code that never blocks: it delays all replies of that node, and waiting there for another
    /// operation deadlocks. Default false.
    /// </summary>
    public bool AllowSynchronousContinuations { get; set; }

    /// <summary>
    /// The most operations that wait for a node, a leader or room in a stream: 0 to 10,000,000. Further ones fail at
    /// once and did not happen, with <see cref="KahunaErrorCode.Unavailable"/> while no node is connected, otherwise
    /// with <see cref="KahunaErrorCode.Overloaded"/>. With 0 only writes that may have been applied wait, so call
    /// <see cref="KahunaClient.DescribeAsync"/> first to connect. Default 100,000.
    /// </summary>
    public int MaxWaiting { get; set; } = 100_000;

    /// <summary>
    /// The shortest pause before an operation or a connection is retried: 1 ms or longer. The pause doubles with each
    /// attempt, and half of it is random. Default 10 ms.
    /// </summary>
    public TimeSpan RetryBackoffMin { get; set; } = TimeSpan.FromMilliseconds(10);

    /// <summary>
    /// The longest pause before an operation, or a connection that operations wait for, is retried: from
    /// <see cref="RetryBackoffMin"/> to 1 minute. Default 500 ms.
    /// </summary>
    public TimeSpan RetryBackoffMax { get; set; } = TimeSpan.FromMilliseconds(500);

    /// <summary>
    /// The longest pause before a connection that no operation waits for is retried: from <see cref="RetryBackoffMax"/>
    /// to 5 minutes. Default 5 s.
    /// </summary>
    public TimeSpan ReconnectBackoffMax { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>After this silence a node is sent a keep-alive ping: 1 s to 5 minutes. Default 3 s.</summary>
    public TimeSpan KeepAliveInterval { get; set; } = TimeSpan.FromSeconds(3);

    /// <summary>
    /// How long a ping may stay unanswered: 1 s to 5 minutes. After that the connection is lost and its operations go
    /// elsewhere. Default 3 s.
    /// </summary>
    public TimeSpan KeepAliveTimeout { get; set; } = TimeSpan.FromSeconds(3);

    /// <summary>
    /// The clock for timeouts, leases and pauses. Default: the system's monotonic clock; on Linux one that advances
    /// while the machine is suspended (CLOCK_BOOTTIME). Only the default clock gives leases a thread of their own.
    /// </summary>
    public TimeProvider TimeProvider { get; set; } = TimeProvider.System;

    /// <summary>Adds one sentence for every invalid option.</summary>
    internal void Check(List<string> errors)
    {
        if (Endpoints is null || (Endpoints.Count == 0 && errors.Count == 0))
        {
            errors.Add("no endpoint is given; at least one of the form https://host:port is needed");
        }

        foreach (Uri endpoint in Endpoints ?? [])
        {
            if (!endpoint.IsAbsoluteUri || endpoint.Scheme != Uri.UriSchemeHttps)
            {
                errors.Add($"endpoint \"{endpoint}\" does not begin with https://");
            }
            else if (endpoint.PathAndQuery != "/" || endpoint.Fragment.Length > 0 || endpoint.UserInfo.Length > 0)
            {
                errors.Add($"endpoint \"{endpoint}\" has more than a host and a port");
            }
        }

        TimeSpan most = TimeSpan.FromMilliseconds(Limits.CommandWaitMsMax);
        CheckSpan(errors, nameof(RequestTimeout), RequestTimeout, TimeSpan.FromMilliseconds(1), most);
        CheckSpan(errors, nameof(ConnectTimeout), ConnectTimeout, TimeSpan.FromMilliseconds(1), most);
        CheckSpan(
            errors, nameof(RetryBackoffMin), RetryBackoffMin, TimeSpan.FromMilliseconds(1), TimeSpan.FromMinutes(1));
        CheckSpan(errors, nameof(RetryBackoffMax), RetryBackoffMax, RetryBackoffMin, TimeSpan.FromMinutes(1));
        CheckSpan(errors, nameof(ReconnectBackoffMax), ReconnectBackoffMax, RetryBackoffMax, most);
        CheckSpan(errors, nameof(KeepAliveInterval), KeepAliveInterval, TimeSpan.FromSeconds(1), most);
        CheckSpan(errors, nameof(KeepAliveTimeout), KeepAliveTimeout, TimeSpan.FromSeconds(1), most);
        if (MaxWaiting is < 0 or > WaitingMax)
        {
            errors.Add(FormattableString.Invariant(
                $"{nameof(MaxWaiting)} is {MaxWaiting:N0}; it must be 0 to {WaitingMax:N0}"));
        }

        if (MaxInFlight is < 1 or > Limits.InFlightPerStreamMax)
        {
            errors.Add(FormattableString.Invariant(
                $"{nameof(MaxInFlight)} is {MaxInFlight:N0}; it must be 1 to {Limits.InFlightPerStreamMax:N0}"));
        }

        if (Durability is not (Durability.Persistent or Durability.Ephemeral))
        {
            errors.Add(FormattableString.Invariant(
                $"{nameof(Durability)} is {(int)Durability}; it must be Persistent or Ephemeral"));
        }

        if (TimeProvider is null)
        {
            errors.Add($"{nameof(TimeProvider)} is null");
        }

        CheckTrust(errors);
    }

    /// <summary>Copies the options for the connection, so that later changes have no effect.</summary>
    internal ConnectionSettings ToSettings() => new()
    {
        Endpoints = [.. Endpoints.Distinct()],
        RequestTimeout = RequestTimeout,
        ConnectTimeout = ConnectTimeout,
        BackoffMin = RetryBackoffMin,
        BackoffMax = RetryBackoffMax,
        ReconnectMax = ReconnectBackoffMax,
        MaxInFlight = MaxInFlight,
        MaxWaiting = MaxWaiting,
        InlineContinuations = AllowSynchronousContinuations,
        TrustedCaFile = TrustedCaFile,
        Insecure = Insecure,
        Authorization = Credentials?.Source ?? AuthorizationSource.None,
        ClientCertificate = Credentials?.Certificate,
        KeepAliveInterval = KeepAliveInterval,
        KeepAliveTimeout = KeepAliveTimeout,
        Time = TimeProvider,
    };

    private void CheckTrust(List<string> errors)
    {
        if (Insecure && TrustedCaFile is not null)
        {
            errors.Add($"{nameof(Insecure)} and {nameof(TrustedCaFile)} contradict each other");
        }
        else if (TrustedCaFile is not null && !File.Exists(TrustedCaFile))
        {
            errors.Add($"{nameof(TrustedCaFile)} \"{TrustedCaFile}\" does not exist");
        }

        if (Credentials?.Check() is { } unusable)
        {
            errors.Add($"{nameof(Credentials)}: {unusable}");
        }
    }

    private static void CheckSpan(List<string> errors, string name, TimeSpan value, TimeSpan least, TimeSpan most)
    {
        if (value < least || value > most)
        {
            errors.Add(FormattableString.Invariant($"{name} is {value}; it must be {least} to {most}"));
        }
    }
}
