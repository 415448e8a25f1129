using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>
/// What the processes used by kind of thread, the node with the most leaderships first, and how many log entries there
/// were. Immutable.
/// </summary>
internal sealed record CostSample(
    double Seconds, double Entries, Dictionary<string, ThreadUse> Bench, IReadOnlyList<Dictionary<string,
    ThreadUse>> Nodes);
