using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Server.Cluster;

/// <summary>
/// What a node's own calls to other nodes carry as a header: HMAC-SHA256(secret, "kahuna forwarder"), in hexadecimal. It shows that the calls of many clients come over this one connection, and
/// that the node they came to has looked at them. It goes to servers only whose certificate is trusted. Immutable; any thread.
/// </summary>
internal sealed class NodePass
{
    public const string Header = "x-kahuna-node";

    private readonly byte[]? _bytes;

    /// <param name="secret">The cluster's secret; empty on a standalone node, where nothing is a pass.</param>
    public NodePass(ReadOnlySpan<byte> secret)
    {
        if (!secret.IsEmpty)
        {
            Text = Convert.ToHexStringLower(HMACSHA256.HashData(secret, "kahuna forwarder"u8));
            _bytes = Encoding.ASCII.GetBytes(Text);
        }
    }

    /// <summary>The header's value; null: there is none.</summary>
    public string? Text { get; }

    /// <summary>A call comes from a node of this cluster.</summary>
    public bool Fits(string? given) => given is not null && _bytes is not null && CryptographicOperations.FixedTimeEquals(_bytes, Encoding.UTF8.GetBytes(given));
}
