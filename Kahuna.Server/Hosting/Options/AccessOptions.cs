namespace Kahuna.Server.Hosting.Options;

/// <summary>The options of a node about who may do what. Immutable; any thread.</summary>
internal sealed record AccessOptions
{
    /// <summary>Default claim of a JSON Web Token with the user's name (RFC 7519, 4.1.2).</summary>
    public const string JwtUserClaimDefault = "sub";

    /// <summary>Default size of a file of the audit log: some 300,000 lines.</summary>
    public const int AuditLogMegabytesDefault = 64;

    /// <summary>Default number of files of the audit log.</summary>
    public const int AuditLogFilesDefault = 8;

    /// <summary>Whether callers have to say who they are.</summary>
    public AuthMode Mode { get; init; }

    /// <summary>Whether <see cref="Mode"/> was given.</summary>
    public bool IsModeGiven { get; init; }

    /// <summary>File with name and password of the first administrator; null: none is made.</summary>
    public string? BootstrapFile { get; init; }

    /// <summary>PEM file with the authorities that issue client certificates; null: none is accepted.</summary>
    public string? ClientCaPath { get; init; }

    /// <summary>The issuer of JSON Web Tokens; null: none is accepted.</summary>
    public string? JwtIssuer { get; init; }

    /// <summary>The audience that a JSON Web Token must name.</summary>
    public string? JwtAudience { get; init; }

    /// <summary>File, or https address, of the issuer's public keys.</summary>
    public string? JwtKeys { get; init; }

    /// <summary>The claim of a JSON Web Token with the user's name.</summary>
    public string JwtUserClaim { get; init; } = JwtUserClaimDefault;

    /// <summary>File with the token that may read <c>/metrics</c>; null: only administrators may.</summary>
    public string? MetricsTokenFile { get; init; }

    /// <summary>Full path of the audit log; null: it is part of the node's log.</summary>
    public string? AuditLogPath { get; init; }

    /// <summary>Size of a file of the audit log, from which on the next one is begun.</summary>
    public long AuditLogBytes { get; init; } = AuditLogMegabytesDefault * 1_000_000L;

    /// <summary>Whether the page for operators is served.</summary>
    public bool ServesPage { get; init; } = true;

    /// <summary>Files of the audit log that are kept, the present one included.</summary>
    public int AuditLogFiles { get; init; } = AuditLogFilesDefault;
}
