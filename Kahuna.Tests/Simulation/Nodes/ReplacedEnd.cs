namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// How a node ends when a state has been put in place whose last entry is another one in the node's own log.
/// </summary>
/// <param name="Group">The partition.</param>
/// <param name="UntilNs">Not after that.</param>
/// <param name="Power">Whether what was not synced is gone.</param>
/// <param name="Ended">Told when it ends.</param>
internal sealed record ReplacedEnd(int Group, long UntilNs, bool Power, Action Ended);
