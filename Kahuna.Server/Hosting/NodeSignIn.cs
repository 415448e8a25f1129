using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The ways to sign in at a node, and the files that they need. Owned by the node's <see cref="NodeAccess"/>, which
/// calls <see cref="Check"/>, one call at a time; the rest from any thread.
/// </summary>
internal sealed class NodeSignIn : IDisposable
{
    private readonly PasswordSignIn _passwords;
    private readonly ClientAuthorities? _authorities;
    private readonly JwtKeyFile? _keyFile;
    private readonly JwtKeyAddress? _keyAddress;
    private readonly MetricsToken? _metricsToken;

    /// <summary>Reads the files that the options name.</summary>
    /// <param name="access">The node's options.</param>
    /// <param name="state">The records.</param>
    /// <param name="credential">Identifies other nodes.</param>
    /// <param name="audit">Gets what is refused.</param>
    /// <param name="log">The node's log.</param>
    /// <exception cref="CertificateException">A file with certificates is unusable; the message is one
    /// line.</exception>
    /// <exception cref="InvalidDataException">Another file is unusable; the message is one line.</exception>
    public NodeSignIn(
        AccessOptions access, AccessState state, NodeCredential credential, IAuditLog audit, ILogger log)
    {
        TimeProvider time = TimeProvider.System;
        _metricsToken = access.MetricsTokenFile is { } token ? new MetricsToken(token, log) : null;
        _authorities = access.ClientCaPath is { } path ? new ClientAuthorities(path, time, log) : null;
        _passwords = new PasswordSignIn(state, new PasswordThrottle(time));
        if (access.JwtIssuer is { } issuer)
        {
            _keyFile = access.JwtKeys!.Contains("://", StringComparison.Ordinal)
                ? null
                : new JwtKeyFile(access.JwtKeys, log);
            _keyAddress = _keyFile is null ? new JwtKeyAddress(new Uri(access.JwtKeys), issuer, log, time) : null;
        }

        IJwtKeys? keys = (IJwtKeys?)_keyFile ?? _keyAddress;
        JwtSettings? settings = keys is null
            ? null : new JwtSettings(access.JwtIssuer!, access.JwtAudience!, access.JwtUserClaim);
        Middleware = new AccessMiddleware(
            new Authenticator(state, credential, _passwords)
            {
                Certificates = _authorities is null ? null : new CertificateSignIn(state),
                Jwts = keys is null ? null : new JwtSignIn(state, settings!, keys, time),
            },
            audit)
        {
            IsMetricsToken = _metricsToken is null ? null : _metricsToken.Matches,
        };
    }

    /// <summary>Finds the caller of each request.</summary>
    public AccessMiddleware Middleware { get; }

    /// <summary>The authorities of client certificates; null: none is accepted.</summary>
    public Func<X509Certificate2Collection>? ClientAuthorities =>
        _authorities is null ? null : () => _authorities.Current;

    /// <summary>Reads changed files again.</summary>
    public void Check()
    {
        _authorities?.Check();
        _keyFile?.Check();
        _keyAddress?.Check();
        _metricsToken?.Check();
    }

    public void Dispose()
    {
        _passwords.Dispose();
        _keyAddress?.Dispose();
    }
}
