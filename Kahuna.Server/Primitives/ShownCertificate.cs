namespace Kahuna.Server.Primitives;

/// <summary>
/// What the certificate proves that a client showed in the TLS handshake of its connection. A feature of the
/// connection; missing if the client showed none. Immutable.
/// </summary>
/// <param name="IsNode">An authority of the nodes issued it, for the host of a node of this cluster.</param>
/// <param name="IsUser">An authority of <c>--auth-client-ca</c> issued it.</param>
internal sealed record ShownCertificate(bool IsNode, bool IsUser);
