namespace Kahuna.Server.Transport;

/// <summary>What a refusal of the other side means, for the log. Stateless.</summary>
internal static class PeerRefusals
{
    /// <summary>The other side is "it", and this node "this node".</summary>
    public static string Describe(PeerRefusal reason) => reason switch
    {
        PeerRefusal.Malformed => "it did not understand the handshake",
        PeerRefusal.Version => "it speaks other versions between nodes, or expects a later one",
        PeerRefusal.ClusterId => "it belongs to another cluster id",
        PeerRefusal.UnknownNode => "this node is none of its peers",
        PeerRefusal.WrongNode => "it is another node than its address promised",
        PeerRefusal.WrongDirection => "it expects to connect itself",
        PeerRefusal.Partitions => "it has another number of partitions",
        PeerRefusal.Secret => "it has another cluster secret",
        PeerRefusal.Voters => "its cluster has other nodes",
        PeerRefusal.Certificate =>
            "it does not accept this node's certificate, or got none; its log says why (--peer-tls)",
        PeerRefusal.Directory => "it knows another data directory of this node",
        _ => "reason " + (int)reason,
    };
}
