using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Identifies a node's own calls to other nodes: a header with HMAC-SHA256(secret, "kahuna forwarder") in hexadecimal.
/// It says that the connection carries requests of many clients, whose limits the sending node has applied. It is sent
/// only to servers with a trusted certificate. Any thread.
/// </summary>
internal sealed class NodeCredential
{
    public const string Header = "x-kahuna-node";

    private readonly ClusterSecrets _secrets;

    /// <param name="secrets">The cluster's secrets; none on a standalone node, where no header matches.</param>
    public NodeCredential(ClusterSecrets secrets) => _secrets = secrets;

    /// <summary>The header's value; null on a standalone node. It changes with the secret.</summary>
    public string? Value => _secrets.Own is { Length: > 0 } secret ? ValueOf(secret) : null;

    /// <summary>True if the call comes from a node of this cluster.</summary>
    public bool Matches(string? given)
    {
        if (given is null)
        {
            return false;
        }

        bool matches = false;
        byte[] bytes = Encoding.UTF8.GetBytes(given);
        foreach (byte[] secret in _secrets.Accepted)
        {
            matches |= CryptographicOperations.FixedTimeEquals(Encoding.ASCII.GetBytes(ValueOf(secret)), bytes);
        }

        return matches;
    }

    private static string ValueOf(byte[] secret) =>
        Convert.ToHexStringLower(HMACSHA256.HashData(secret, "kahuna forwarder"u8));
}
