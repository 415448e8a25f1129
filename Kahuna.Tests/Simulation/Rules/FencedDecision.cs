namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// A transaction over several partitions that counts only while a token has a lock. Owned by a
/// <see cref="TransactionRules"/>.
/// </summary>
internal sealed class FencedDecision(string @lock, long token)
{
    /// <summary>The lock's name.</summary>
    public string Lock => @lock;

    public long Token => token;

    /// <summary>When a node was first asked to commit it: nobody can have done so before.</summary>
    public long AskedNs { get; set; } = long.MaxValue;
}
