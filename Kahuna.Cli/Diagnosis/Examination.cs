namespace Kahuna.Cli.Diagnosis;

/// <summary>What the doctor knows. Immutable.</summary>
/// <param name="Reports">One for each node.</param>
/// <param name="SignIn">
/// How the cluster knows this client: <c>none</c> when it runs without authentication; null: not known.
/// </param>
internal sealed record Examination(IReadOnlyList<NodeReport> Reports, string? SignIn)
{
    /// <summary>The nodes that told their state.</summary>
    public IEnumerable<(string Node, NodeStatus Status)> Known => Reports
        .Select(static report => report.Status)
        .OfType<NodeStatus>()
        .Select(static status => ($"node {status.NodeId}", status));
}
