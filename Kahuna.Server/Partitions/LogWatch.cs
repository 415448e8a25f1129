using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Whether the node's log moves: a disk may stop without an error, and then everything that waits for it waits without an end. Counts ticks, not time, so
/// that a process that stood still does not blame its disk. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LogWatch(LoopOptions options, int loop, Action<ReportLine> report)
{
    private ulong _persistedAtTick;
    private int _stalledTicks;

    /// <summary>The log has waited for its disk for an election timeout and got nothing back.</summary>
    public bool IsStalled => _stalledTicks >= options.ElectionTicks;

    /// <summary>A tick of the node's clock.</summary>
    /// <param name="submitted">Last batch that was handed to the log.</param>
    /// <param name="persisted">Last batch that is on stable storage.</param>
    public void Tick(ulong submitted, ulong persisted)
    {
        bool waits = submitted > persisted && persisted == _persistedAtTick;
        _persistedAtTick = persisted;
        bool wasStalled = IsStalled;
        _stalledTicks = waits ? Math.Min(_stalledTicks + 1, options.ElectionTicks) : 0;
        if (IsStalled && !wasStalled)
        {
            int stalledMs = options.ElectionTicks * options.TickMs;
            report($"Loop {loop}: the log's disk has not finished a write for {stalledMs} ms. This node hands its leaderships over and seeks none until it does.");
        }
        else if (wasStalled && !IsStalled)
        {
            report($"Loop {loop}: the log's disk moves again.");
        }
    }
}
