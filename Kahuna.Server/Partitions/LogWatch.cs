using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions;

/// <summary>
/// Whether the node's log moves: a disk may stop without an error, or take so long for each write that everything waits for it. Counts ticks, not time, so
/// that a process that stood still does not blame its disk. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LogWatch(LoopOptions options, int loop, Action<ReportLine> report)
{
    private readonly Ring<Outstanding> _outstanding = new(options.ElectionTicks);
    private ulong _seen;
    private long _ticks;

    /// <summary>
    /// The log has waited for its disk for an election timeout with the oldest batch that is under way. It is so until that batch is younger than half of that: a disk that is
    /// slow all the time finishes one batch after the other, and the next one has waited for that long then.
    /// </summary>
    public bool IsStalled { get; private set; }

    /// <summary>A tick of the node's clock.</summary>
    /// <param name="submitted">Last batch that was handed to the log.</param>
    /// <param name="persisted">Last batch that is on stable storage.</param>
    public void Tick(ulong submitted, ulong persisted)
    {
        _ticks++;
        while (_outstanding.Count > 0 && _outstanding[0].Batch <= persisted)
        {
            _outstanding.Take();
        }

        Note(submitted, persisted);
        long waited = _outstanding.Count > 0 ? _ticks - _outstanding[0].Tick : 0;
        bool wasStalled = IsStalled;
        IsStalled = waited >= (wasStalled ? options.ElectionTicks / 2 : options.ElectionTicks);
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

    /// <summary>Notes when the batches since the last tick were submitted.</summary>
    private void Note(ulong submitted, ulong persisted)
    {
        if (submitted > _seen && submitted > persisted)
        {
            if (_outstanding.Count == options.ElectionTicks)
            {
                // The oldest has waited for as long as is asked for; of the youngest it need not be known so well.
                _outstanding.RemoveLast(1);
            }

            _outstanding.Add(new Outstanding(submitted, _ticks - 1));
        }

        _seen = submitted;
    }

    /// <summary>Batches up to this one, and behind those of the item before, were submitted after this tick.</summary>
    private readonly record struct Outstanding(ulong Batch, long Tick);
}
