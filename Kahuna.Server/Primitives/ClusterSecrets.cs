namespace Kahuna.Server.Primitives;

/// <summary>
/// The secrets by which the nodes of a cluster recognize each other. A node proves that it knows the first one, and
/// accepts a proof of any, so that a secret can be replaced while the nodes run. Any thread.
/// </summary>
/// <param name="secrets">The secrets, the own one first; none on a standalone node.</param>
internal sealed class ClusterSecrets(params byte[][] secrets)
{
    /// <summary>The one in use and the one before or after it.</summary>
    public const int Max = 2;

    private volatile byte[][] _secrets = secrets;

    /// <summary>What is accepted, the own one first.</summary>
    public IReadOnlyList<byte[]> Accepted => _secrets;

    /// <summary>What this node proves with; empty on a standalone node.</summary>
    public byte[] Own => _secrets is [{ } own, ..] ? own : [];

    /// <summary>Others count from now on. What was proven before stays so.</summary>
    public void Replace(byte[][] secrets) => _secrets = secrets;

    /// <summary>Does not show them: options are logged and printed.</summary>
    public override string ToString() => $"{_secrets.Length} secrets";
}
