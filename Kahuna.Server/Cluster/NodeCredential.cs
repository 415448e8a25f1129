using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Identifies a node's own calls to other nodes: a header with HMAC-SHA256(secret, "kahuna forwarder") in hexadecimal.
/// It says that the connection carries requests of many clients, whose limits the sending node has applied. It is sent
/// only to servers with a trusted certificate. Immutable; any thread.
/// </summary>
internal sealed class NodeCredential
{
    public const string Header = "x-kahuna-node";

    private readonly byte[]? _bytes;

    /// <param name="secret">The cluster's secret; empty on a standalone node, where no header matches.</param>
    public NodeCredential(ReadOnlySpan<byte> secret)
    {
        if (!secret.IsEmpty)
        {
            Value = Convert.ToHexStringLower(HMACSHA256.HashData(secret, "kahuna forwarder"u8));
            _bytes = Encoding.ASCII.GetBytes(Value);
        }
    }

    /// <summary>The header's value; null on a standalone node.</summary>
    public string? Value { get; }

    /// <summary>True if the call comes from a node of this cluster.</summary>
    public bool Matches(string? given) =>
        given is not null
            && _bytes is not null
            && CryptographicOperations.FixedTimeEquals(_bytes, Encoding.UTF8.GetBytes(given));
}
