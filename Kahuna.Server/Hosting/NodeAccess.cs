using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>
/// What a node needs to know who somebody is: the records, the ways to sign in, the audit log. Owned by the node, whose
/// timer calls <see cref="Check"/>, one call at a time; the rest from any thread.
/// </summary>
internal sealed class NodeAccess : IDisposable
{
    private const int LookMs = 1_000;
    private const int OwnSecretBytes = 32;

    private readonly NodeSignIn _signIn;
    private readonly AuditFile? _auditFile;
    private readonly AuditLog _audit;
    private readonly ClusterSecretWatch _secrets;
    private readonly BootstrapFile? _bootstrap;
    private readonly NodeRecovery? _recovery;
    private readonly ILogger _log;
    private int _sinceLookMs;

    /// <summary>Reads the files that the options name.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="log">The node's log.</param>
    /// <exception cref="CertificateException">A file with certificates is unusable; the message is one
    /// line.</exception>
    /// <exception cref="InvalidDataException">Another file is unusable; the message is one line.</exception>
    public NodeAccess(NodeOptions options, ILogger log)
    {
        _secrets = new ClusterSecretWatch(options.ClusterSecretFile, log);
        // A node without others calls itself, as coordinator; nobody else knows its secret.
        ClusterSecrets secrets = options.ClusterSecretFile is null
            ? new ClusterSecrets(RandomNumberGenerator.GetBytes(OwnSecretBytes))
            : _secrets.Secrets;
        Credential = new NodeCredential(secrets, options.PeerTls == PeerTlsMode.Mutual);
        _log = log;
        AccessOptions access = options.Access;
        _bootstrap = access.BootstrapFile is { } bootstrap ? BootstrapFile.Read(bootstrap) : null;
        _recovery = NodeRecovery.Find(options);
        State = new AccessState(access.Mode == AuthMode.Required, TimeProvider.System);
        _auditFile = access.AuditLogPath is { } file
            ? new AuditFile(file, access.AuditLogBytes, access.AuditLogFiles)
            : null;
        _audit = new AuditLog(_auditFile is null ? null : _auditFile.Append, log, TimeProvider.System);
        Gate = State.IsRequired ? new AccessGate(State, new RefusalAudit(_audit)) : null;
        _signIn = new NodeSignIn(access, State, Credential, _audit, log);
    }

    /// <summary>The secrets by which the nodes recognize each other.</summary>
    public ClusterSecrets Secrets => _secrets.Secrets;

    /// <summary>Identifies calls of other nodes.</summary>
    public NodeCredential Credential { get; }

    /// <summary>The records, and who has something open.</summary>
    public AccessState State { get; }

    /// <summary>Decides about every command; null: authentication is off.</summary>
    public AccessGate? Gate { get; }

    /// <summary>Changes the records; null before <see cref="Attach"/>.</summary>
    public AccessLedger? Ledger { get; private set; }

    /// <summary>Gets what is refused and what is administered.</summary>
    public IAuditLog Audit => _audit;

    /// <summary>Finds the caller of each request.</summary>
    public AccessMiddleware Middleware => _signIn.Middleware;

    /// <summary>The authorities of client certificates; null: none is accepted.</summary>
    public Func<X509Certificate2Collection>? ClientAuthorities => _signIn.ClientAuthorities;

    /// <summary>What the node serves. Set once, before it does.</summary>
    public IEndpointRouteBuilder? Routes { get; set; }

    /// <summary>Follows the meta group, by what this node has applied of it.</summary>
    public void Attach(ClusterView view, LoopSet loops)
    {
        AccessLedger.Follow(State, view, loops);
        Ledger = new AccessLedger(State, loops.AskMeta, NewId, TimeProvider.System);
    }

    /// <summary>A tick of the node: about once a second what ends by time is looked at.</summary>
    /// <param name="ms">Milliseconds of a tick.</param>
    public void Tick(int ms)
    {
        _sinceLookMs += ms;
        if (_sinceLookMs >= LookMs)
        {
            _sinceLookMs = 0;
            State.Tick();
        }
    }

    /// <summary>Reads changed files again.</summary>
    public void Check()
    {
        _secrets.Check();
        _signIn.Check();
    }

    /// <summary>The administration of users, roles and tokens.</summary>
    public AdminService Administration() => new(
        new AccessChanges(Ledger!, TimeProvider.System),
        Ledger!,
        static context => context.GetHttpContext().Features.Get<Caller>() ?? Caller.Anybody,
        _audit,
        State.Quotas);

    /// <summary>Adds the path on which the first administrator is made over the network.</summary>
    public void Map(IEndpointRouteBuilder app) =>
        InitAdminEndpoint.Map(app, new FirstAdministrator(Ledger!, _audit));

    /// <summary>
    /// Makes the administrator of the bootstrap file, if one is given, when the node can; ends with the token.
    /// </summary>
    public Task BootstrapAsync(CancellationToken stop) =>
        _bootstrap is null
            ? Task.CompletedTask
            : new Bootstrap(_bootstrap, new FirstAdministrator(Ledger!, _audit), _log).RunAsync(stop);

    /// <summary>
    /// Votes for the request to recover an administrator in the data directory, if there is one; ends with the token.
    /// </summary>
    public Task RecoverAsync(CancellationToken stop) =>
        _recovery?.RunAsync(Ledger!, _audit, _log, stop) ?? Task.CompletedTask;

    private static AccessChangeId NewId()
    {
        Span<byte> random = stackalloc byte[2 * sizeof(ulong)];
        RandomNumberGenerator.Fill(random);
        return new AccessChangeId(BitConverter.ToUInt64(random), BitConverter.ToUInt64(random[sizeof(ulong)..]));
    }

    public void Dispose()
    {
        _signIn.Dispose();
        _audit.Dispose();
        _auditFile?.Dispose();
    }
}
