using Kahuna.Client.Connection.Access;

namespace Kahuna.Client.Connection;

/// <summary>
/// The client's options as the connection uses them: a copy, so that later changes of the options have no effect.
/// Immutable.
/// </summary>
internal sealed record ConnectionSettings
{
    public required IReadOnlyList<Uri> Endpoints { get; init; }

    public required TimeSpan RequestTimeout { get; init; }

    public required TimeSpan ConnectTimeout { get; init; }

    public required TimeSpan BackoffMin { get; init; }

    public required TimeSpan BackoffMax { get; init; }

    /// <summary>As <see cref="BackoffMax"/>, for a connection that no operation waits for.</summary>
    public required TimeSpan ReconnectMax { get; init; }

    public required int MaxInFlight { get; init; }

    /// <summary>New operations that may wait for a route or for room in a stream.</summary>
    public required int MaxWaiting { get; init; }

    /// <summary>Continuations run on the thread that reads the stream.</summary>
    public required bool InlineContinuations { get; init; }

    /// <summary>
    /// While the leader is unreachable, other nodes are asked to forward operations. False for operations that nodes
    /// forward, which would otherwise circulate.
    /// </summary>
    public bool AsksToForward { get; init; } = true;

    /// <summary>
    /// A file of PEM certificates to trust; null for the machine's roots and the authority of a local server.
    /// </summary>
    public string? TrustedCaFile { get; init; }

    /// <summary>Any server certificate is accepted.</summary>
    public bool Insecure { get; init; }

    /// <summary>Says to the nodes who the client is.</summary>
    public AuthorizationSource Authorization { get; init; } = AuthorizationSource.None;

    /// <summary>The certificate that the client shows; null for none.</summary>
    public ClientCertificateFile? ClientCertificate { get; init; }

    public required TimeSpan KeepAliveInterval { get; init; }

    public required TimeSpan KeepAliveTimeout { get; init; }

    /// <summary>The clock that the application chose.</summary>
    public required TimeProvider Time { get; init; }
}
