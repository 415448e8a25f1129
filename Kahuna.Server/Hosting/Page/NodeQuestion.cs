using Kahuna.Server.Api.Access;

namespace Kahuna.Server.Hosting.Page;

/// <summary>What a node asks the others for its page. A value.</summary>
/// <param name="Path">The path at the other nodes.</param>
/// <param name="BytesMax">Largest answer of a node.</param>
/// <param name="Age">How long a gathered result is good.</param>
internal sealed record NodeQuestion(string Path, int BytesMax, TimeSpan Age)
{
    /// <summary>
    /// The status. The largest answer has the 512 groups of a node with the most partitions, at 1.2 KB each, and as
    /// much again.
    /// </summary>
    public static NodeQuestion Status { get; } = new(
        AccessPolicies.NodeStatusPath, BytesMax: 2 << 20, TimeSpan.FromSeconds(1));

    /// <summary>The last hour, which changes every ten seconds.</summary>
    public static NodeQuestion History { get; } = new(
        AccessPolicies.NodeHistoryPath, NodeHistory.BytesMax, TimeSpan.FromSeconds(5));

    /// <summary>Slow operations of a node that the page shows.</summary>
    public const int SlowMax = 100;

    /// <summary>The slow operations: a hundred, at 1.5 KB with a name that is all control characters.</summary>
    public static NodeQuestion Slow { get; } = new(
        AccessPolicies.NodeSlowPath, BytesMax: 256 << 10, TimeSpan.FromSeconds(2));

    /// <summary>
    /// The queue of a lock: a thousand claims, at 1.7 KB with an owner of 256 characters that are all escaped. Each
    /// caller asks for another lock, so nothing is kept.
    /// </summary>
    public static NodeQuestion Queue { get; } = new(AccessPolicies.NodeQueuePath, BytesMax: 2 << 20, TimeSpan.Zero);
}
