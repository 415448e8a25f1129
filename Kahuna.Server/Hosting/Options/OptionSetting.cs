namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// One option under its three names: <c>--node-id</c>, <c>KAHUNA_NODE_ID</c> and <c>nodeId</c>. The command line, the
/// environment, the JSON file and the help text are all built from the list <see cref="All"/>. <see cref="Switches"/>
/// adds the options of the command line alone. Immutable.
/// </summary>
internal sealed record OptionSetting(string Name, string ValueName, string Description)
{
    public const string EnvironmentPrefix = "KAHUNA_";

    public static readonly OptionSetting NodeId = new(
        "node-id",
        "number",
        "Id of this node, 1 to 65535. Required with --peers. Default: 1.");

    public static readonly OptionSetting Listen = new(
        "listen",
        "url[,url]",
        "Addresses to listen on. Default: the port of the announced address, on that address if it is loopback, "
        + "else on all interfaces. Without an announced address: https://127.0.0.1:8082.");

    public static readonly OptionSetting Advertise = new(
        "advertise",
        "url",
        "Address by which clients and other nodes reach this node. "
        + "Default: its entry in --peers, else the first --listen.");

    public static readonly OptionSetting Peers = new(
        "peers",
        "id=url,…",
        "All nodes of the cluster, this one included: 1=https://a:8082,2=https://b:8082,3=https://c:8082.");

    public static readonly OptionSetting Data = new(
        "data",
        "directory",
        "Directory for all data of this node. Default: a directory of the user.");

    public static readonly OptionSetting Partitions = new(
        "partitions",
        "number",
        "Number of partitions, fixed when the data directory is created. "
        + "Default: the directory's number, else one for every two processors, 1 to 16.");

    public static readonly OptionSetting Leaders = new(
        "leaders",
        "together|spread",
        "All leaders on one node, or distributed over the nodes. Default: together.");

    public static readonly OptionSetting LogLimit = new(
        "log-limit",
        "size",
        "Size of the log above which writes are refused, as 500MB, 16GB or 16GiB. Default: 16GB.");

    public static readonly OptionSetting LogKeep = new(
        "log-keep",
        "size",
        "Size of the log that is kept for lagging nodes; a smaller log is not cut. "
        + "Must be less than --log-limit. Default: 512MB.");

    public static readonly OptionSetting LogWrites = new(
        "log-writes",
        "direct|cached",
        "Whether the log is written past the system's page cache, where the file system can, or through it. "
        + "Default: direct.");

    public static readonly OptionSetting Reads = new(
        "reads",
        "round|lease",
        "How a leader makes sure that it still leads before it answers a read of persistent data: it asks a majority, "
        + "or has a lease, which needs clocks that run about equally fast. Default: round.");

    public static readonly OptionSetting PersistentLimit = new(
        "persistent-limit",
        "size",
        "Memory for persistent data on this node; above it, writes that add data are refused. "
        + "Default: half of the memory of the machine or container.");

    public static readonly OptionSetting EphemeralLimit = new(
        "ephemeral-limit",
        "size",
        "Memory for ephemeral keys on this node, their logs included; "
        + "above it, writes of ephemeral keys are refused. Default: 1GB.");

    public static readonly OptionSetting EphemeralPolicy = new(
        "ephemeral-policy",
        "refuse|evict",
        "At --ephemeral-limit: refuse writes, or evict keys that were not used recently. "
        + "Must be the same on all nodes. Default: refuse.");

    public static readonly OptionSetting EphemeralPatience = new(
        "ephemeral-patience",
        "time",
        "How long to keep ephemeral data while a majority that may still hold all of it is out of reach, "
        + "as 90s, 10min, 1h or forever. Default: 10min.");

    public static readonly OptionSetting WatchHistory = new(
        "watch-history",
        "size",
        "Memory for the newest changes of all keys, to which watches can go back. Default: 64MiB.");

    public static readonly OptionSetting BackgroundRate = new(
        "background-rate",
        "size",
        "Bytes per second for writing checkpoints and for sending snapshots, each. "
        + "Default: 12MB per processor, from 24MB to 128MB.");

    public static readonly OptionSetting StateStore = new(
        "state-store",
        "auto|rocksdb|files",
        "Format of the stored state, fixed when the data directory is created. "
        + "Default: auto, which is RocksDB if its library can be loaded, else files.");

    public static readonly OptionSetting FeatureLevelMax = new(
        "feature-level-max",
        "number",
        "Highest feature level to which this node raises the cluster after an upgrade; set the same on all nodes. "
        + "Default: the highest that all nodes support.");

    public static readonly OptionSetting MaxValueBytes = new(
        "max-value-bytes",
        "size",
        "Largest value that a client may write, up to 16MiB. Default: 1MiB.");

    public static readonly OptionSetting Certificate = new(
        "certificate",
        "file",
        "PEM file with the certificate chain of this node. Default: a development certificate.");

    public static readonly OptionSetting CertificateKey = new(
        "certificate-key",
        "file",
        "PEM file with the private key of the certificate.");

    public static readonly OptionSetting TrustedCa = new(
        "trusted-ca",
        "file",
        "PEM file with the authorities trusted for other nodes. "
        + "Default: the system's, or the development authority.");

    public static readonly OptionSetting ClusterSecretFile = new(
        "cluster-secret-file",
        "file",
        "File with the secret that the nodes prove to each other. Required with --peers.");

    public static readonly OptionSetting PeerTls = new(
        "peer-tls",
        "secret|offer|mutual",
        "What nodes prove to each other: the cluster's secret; or a certificate too, which is demanded (mutual) or "
        + "only shown (offer), for the change from one to the other. Default: secret.");

    public static readonly OptionSetting ConnectionsPerAddress = new(
        "connections-per-address",
        "number",
        "Most open connections of one remote address; loopback and the addresses of linked nodes do not count. "
        + "0: no limit. Default: 1024.");

    public static readonly OptionSetting DirectLinks = new(
        "direct-links",
        "number",
        "Most clients whose requests come on a connection with a thread of its own; the others share the thread pool. "
        + "0: none. Default: 64.");

    public static readonly OptionSetting ClusterId = new(
        "cluster-id",
        "name",
        "Name of the cluster; nodes of different clusters refuse each other. Default: kahuna.");

    public static readonly OptionSetting Auth = new(
        "auth",
        "required|none",
        "Whether callers have to sign in. Must be given if other machines can reach the node. "
        + "Default on loopback addresses: none.");

    public static readonly OptionSetting AuthBootstrapFile = new(
        "auth-bootstrap-file",
        "file",
        "File with two lines, user and password, of the first administrator, who is made while there are no users. "
        + "Only its owner may be able to read it.");

    public static readonly OptionSetting AuthClientCa = new(
        "auth-client-ca",
        "file",
        "PEM file with the authorities that issue client certificates. Default: none is accepted.");

    public static readonly OptionSetting AuthJwtIssuer = new(
        "auth-jwt-issuer",
        "text",
        "Issuer ('iss') of the JSON Web Tokens that are accepted. Default: none is accepted.");

    public static readonly OptionSetting AuthJwtAudience = new(
        "auth-jwt-audience",
        "text",
        "Audience ('aud') that a JSON Web Token must name.");

    public static readonly OptionSetting AuthJwtKeys = new(
        "auth-jwt-keys",
        "file|url",
        "Public keys of the issuer: a file (JSON Web Key Set or PEM), or the https address of a key set or of an "
        + "OpenID configuration.");

    public static readonly OptionSetting AuthJwtUserClaim = new(
        "auth-jwt-user-claim",
        "name",
        "Claim of a JSON Web Token with the name of the user. Default: sub.");

    public static readonly OptionSetting AuditLog = new(
        "audit-log",
        "file",
        "File for the audit log, a JSON object per line. Default: the node's log.");

    public static readonly OptionSetting AuditLogMb = new(
        "audit-log-mb",
        "number",
        "Megabytes from which on the audit log begins a new file. Default: 64.");

    public static readonly OptionSetting AuditLogFiles = new(
        "audit-log-files",
        "number",
        "Files of the audit log that are kept. Default: 8.");

    public static readonly OptionSetting Ui = new(
        "ui",
        "on|off",
        "Whether the node serves the page for operators at /ui. Default: on.");

    public static readonly OptionSetting LogLevel = new(
        "log-level",
        "level",
        "trace, debug, information, warning, error, critical or none. Default: information.");

    public static readonly OptionSetting LogFormat = new(
        "log-format",
        "text|json",
        "Format of log lines: text, or one JSON object per line with the fields of the event. Default: text.");

    public static readonly OptionSetting Metrics = new(
        "metrics",
        "on|off",
        "Count and time operations, and serve /metrics for Prometheus. Default: on.");

    public static readonly OptionSetting MetricsTokenFile = new(
        "metrics-token-file",
        "file",
        "File with a token that may read /metrics, and nothing else. Default: only administrators may.");

    public static readonly OptionSetting OtlpEndpoint = new(
        "otlp-endpoint",
        "url",
        "Receiver of the OpenTelemetry protocol to which metrics and traces are sent, as http://collector:4317. "
        + "Default: as OTEL_EXPORTER_OTLP_ENDPOINT says, else none.");

    public static readonly OptionSetting SlowLogThreshold = new(
        "slow-log-threshold",
        "time|off",
        "Operations that take so long or longer are kept for 'kahuna slow', as 100ms or 1s; 0ms: all. "
        + "Default: 100ms.");

    public static readonly OptionSetting TraceRatio = new(
        "trace-ratio",
        "0..1",
        "Share of the operations to trace of those whose callers send no trace, as 0.001. Default: 0.");

    public static readonly OptionSetting Trace = new(
        "trace",
        "file",
        "File to which the node appends a line for each step of the consensus, for scripts/check-traces.sh. "
        + "Default: none.");

    public static readonly OptionSetting Config = new(
        "config",
        "file",
        "JSON file with options; environment and command line override it.");


    public static readonly OptionSetting Rebuild = new(
        "rebuild",
        string.Empty,
        "Drop log and state of this node, after a confirmation, and restore them from the other nodes. "
        + "Command line only.");

    public static readonly OptionSetting Yes = new(
        "yes",
        string.Empty,
        "Confirm --rebuild without a question. Command line only.");

    /// <summary>The options that take a value.</summary>
    public static readonly IReadOnlyList<OptionSetting> All =
    [
        NodeId, Listen, Advertise, Peers, Data, Partitions, Leaders, StateStore, LogLimit, LogKeep, LogWrites,
        Reads, PersistentLimit, EphemeralLimit, EphemeralPolicy, EphemeralPatience, WatchHistory, BackgroundRate,
        FeatureLevelMax, MaxValueBytes, Certificate, CertificateKey, TrustedCa, ClusterSecretFile, PeerTls,
        ConnectionsPerAddress, DirectLinks, ClusterId, Auth, AuthBootstrapFile, AuthClientCa, AuthJwtIssuer,
        AuthJwtAudience, AuthJwtKeys, AuthJwtUserClaim, AuditLog, AuditLogMb, AuditLogFiles, Metrics, MetricsTokenFile,
        OtlpEndpoint, SlowLogThreshold, TraceRatio, Ui, LogLevel, LogFormat, Trace, Config,
    ];

    /// <summary>
    /// The options without a value, which exist on the command line only. An option that drops data must come from a
    /// person each time, and must not remain in a file.
    /// </summary>
    public static readonly IReadOnlyList<OptionSetting> Switches = [Rebuild, Yes];

    /// <summary>The name on the command line.</summary>
    public string Flag { get; } = "--" + Name;

    /// <summary>The name in the environment.</summary>
    public string Variable { get; } = EnvironmentPrefix + Name.Replace('-', '_').ToUpperInvariant();

    /// <summary>The name in a JSON file.</summary>
    public string Key { get; } = ToCamelCase(Name);

    private static string ToCamelCase(string name)
    {
        string[] words = name.Split('-');
        return words[0] + string.Concat(words.Skip(1).Select(word => char.ToUpperInvariant(word[0]) + word[1..]));
    }
}
