namespace Kahuna.Server.Transport;

/// <summary>
/// What the nodes of a cluster prove to each other besides the cluster's secret (<c>--peer-tls</c>). A cluster goes
/// from one mode to the next without a stop; nodes in <see cref="Secret"/> and in <see cref="Mutual"/> do not link.
/// </summary>
internal enum PeerTlsMode
{
    /// <summary>The node that accepts a connection shows its certificate. Links to earlier releases too.</summary>
    Secret,

    /// <summary>
    /// Both show theirs. A node that shows none, or one that does not prove it, is logged and accepted.
    /// </summary>
    Offer,

    /// <summary>Both show theirs, and a node without a certificate that proves it is refused.</summary>
    Mutual,
}
