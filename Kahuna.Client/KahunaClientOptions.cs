using Kahuna.Client.Wire;

namespace Kahuna.Client;

/// <summary>
/// How a client reaches its cluster and how long it tries. Read once, when the client is made: later changes have no
/// effect. Invalid settings are refused there, all at once, with an <see cref="ArgumentException"/>.
/// </summary>
public sealed class KahunaClientOptions
{
    private const int WaitingMax = 10_000_000;

    /// <summary>Where to find the cluster: <c>https://host:port</c>, one or more. One that answers is enough; the others are learned from it. In configuration a list, or one comma-separated text.</summary>
    public EndpointList Endpoints { get; set; } = [];

    /// <summary>How long one operation may take altogether, retries included; 1 ms to 5 minutes. Default 10 s. Waiting for a lock counts on its own: an acquire ends within its wait and one request timeout.</summary>
    public TimeSpan RequestTimeout { get; set; } = TimeSpan.FromSeconds(10);

    /// <summary>How long one attempt to connect to a node may take, and how long <see cref="KahunaClient.DescribeAsync"/> waits for the first node; 1 ms to 5 minutes. Default 5 s.</summary>
    public TimeSpan ConnectTimeout { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>
    /// A file of PEM certificates; only servers whose certificate leads to one of them are trusted. It is read again when it
    /// has changed, at the next connection. Null: the machine's trusted roots, and for endpoints on the loopback interface also the
    /// development authority of a local server.
    /// </summary>
    public string? TrustedCaFile { get; set; }

    /// <summary>Accept any server certificate. Traffic is encrypted, but anybody who can intercept it can read and change it. Default false.</summary>
    public bool Insecure { get; set; }

    /// <summary>Durability level of calls that do not name one. Default <see cref="Durability.Persistent"/>.</summary>
    public Durability Durability { get; set; } = Durability.Persistent;

    /// <summary>Operations that may be under way to one node at a time, 1 to 16,384; further ones wait their turn inside their own timeout. Default 8,192.</summary>
    public int MaxInFlight { get; set; } = 8192;

    /// <summary>
    /// Run the code that follows an <c>await</c> on the thread that received the reply, which saves a hand-over per
    /// operation. Only for code that never blocks: while it runs, no other reply of that node is delivered, and code that
    /// waits there for another operation of the client waits for ever. Default false.
    /// </summary>
    public bool AllowSynchronousContinuations { get; set; }

    /// <summary>
    /// Operations that may wait at a time for a node, a leader or a place in a stream, 0 to 10,000,000. Further ones fail at once and did not happen
    /// (<see cref="KahunaErrorCode.Unavailable"/> while no node is connected, else <see cref="KahunaErrorCode.Overloaded"/>). With 0 nothing waits,
    /// also not for the first connection or for a new leader, except for writes that may have been carried out: call <see cref="KahunaClient.DescribeAsync"/> first. Default 100,000.
    /// </summary>
    public int MaxWaiting { get; set; } = 100_000;

    /// <summary>The shortest pause before an operation or a connection is tried again; 1 ms or longer. The pause doubles with each attempt, half of it at random. Default 10 ms.</summary>
    public TimeSpan RetryBackoffMin { get; set; } = TimeSpan.FromMilliseconds(10);

    /// <summary>The longest pause before an operation is tried again, or a connection that operations wait for; not shorter than <see cref="RetryBackoffMin"/>, at most 1 minute. Default 500 ms.</summary>
    public TimeSpan RetryBackoffMax { get; set; } = TimeSpan.FromMilliseconds(500);

    /// <summary>The longest pause before a connection is tried again that no operation waits for; not shorter than <see cref="RetryBackoffMax"/>, at most 5 minutes. Default 5 s.</summary>
    public TimeSpan ReconnectBackoffMax { get; set; } = TimeSpan.FromSeconds(5);

    /// <summary>A node that has been silent for so long is asked for a sign of life; 1 s to 5 minutes. Default 3 s.</summary>
    public TimeSpan KeepAliveInterval { get; set; } = TimeSpan.FromSeconds(3);

    /// <summary>Without a sign of life for so long after that the connection counts as lost, and what is under way there goes elsewhere; 1 s to 5 minutes. Default 3 s.</summary>
    public TimeSpan KeepAliveTimeout { get; set; } = TimeSpan.FromSeconds(3);

    /// <summary>
    /// The clock for timeouts, leases and pauses. The default is the system's monotonic clock; on Linux one that goes on
    /// while the machine is suspended (CLOCK_BOOTTIME). Only with the default do leases have a thread of their own.
    /// </summary>
    public TimeProvider TimeProvider { get; set; } = TimeProvider.System;

    /// <summary>Adds one sentence for every setting that cannot be used.</summary>
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
        CheckSpan(errors, nameof(RetryBackoffMin), RetryBackoffMin, TimeSpan.FromMilliseconds(1), TimeSpan.FromMinutes(1));
        CheckSpan(errors, nameof(RetryBackoffMax), RetryBackoffMax, RetryBackoffMin, TimeSpan.FromMinutes(1));
        CheckSpan(errors, nameof(ReconnectBackoffMax), ReconnectBackoffMax, RetryBackoffMax, most);
        CheckSpan(errors, nameof(KeepAliveInterval), KeepAliveInterval, TimeSpan.FromSeconds(1), most);
        CheckSpan(errors, nameof(KeepAliveTimeout), KeepAliveTimeout, TimeSpan.FromSeconds(1), most);
        if (MaxWaiting is < 0 or > WaitingMax)
        {
            errors.Add(FormattableString.Invariant($"{nameof(MaxWaiting)} is {MaxWaiting:N0}; it must be 0 to {WaitingMax:N0}"));
        }

        if (MaxInFlight is < 1 or > Limits.InFlightPerStreamMax)
        {
            errors.Add(FormattableString.Invariant($"{nameof(MaxInFlight)} is {MaxInFlight:N0}; it must be 1 to {Limits.InFlightPerStreamMax:N0}"));
        }

        if (Durability is not (Durability.Persistent or Durability.Ephemeral))
        {
            errors.Add(FormattableString.Invariant($"{nameof(Durability)} is {(int)Durability}; it must be {nameof(Durability.Persistent)} or {nameof(Durability.Ephemeral)}"));
        }

        if (TimeProvider is null)
        {
            errors.Add($"{nameof(TimeProvider)} is null");
        }

        if (Insecure && TrustedCaFile is not null)
        {
            errors.Add($"{nameof(Insecure)} and {nameof(TrustedCaFile)} contradict each other");
        }
        else if (TrustedCaFile is not null && !File.Exists(TrustedCaFile))
        {
            errors.Add($"{nameof(TrustedCaFile)} \"{TrustedCaFile}\" does not exist");
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
