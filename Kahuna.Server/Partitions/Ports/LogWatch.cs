using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// How the node's log does, as one loop sees it: whether it takes writes, how many batches it owes, and whether its
/// disk makes progress. A disk may stop without an error, or take so long for each write that everything waits for it.
/// Progress is counted in ticks, not in time, so that a paused process does not blame its disk. Owned by one loop; not
/// thread-safe.
/// </summary>
/// <param name="options">How long an election timeout is.</param>
/// <param name="loop">Number of the loop.</param>
/// <param name="ports">The log, and who gets a line when its disk stops.</param>
/// <param name="writer">The loop's access to the log.</param>
internal sealed class LogWatch(LoopOptions options, int loop, LoopPorts ports, ILogWriter writer)
{
    private readonly Ring<Outstanding> _outstanding = new(options.ElectionTicks);
    private ulong _seen;
    private long _ticks;

    /// <summary>
    /// The log has waited for its disk for an election timeout with the oldest batch that is under way. It is so until
    /// that batch is younger than half of that: a disk that is slow all the time finishes one batch after the other,
    /// and the next one has waited for that long then.
    /// </summary>
    public bool IsStalled { get; private set; }

    /// <summary>Why writes are refused in this turn, or null.</summary>
    public string? RefuseWrites { get; private set; }

    /// <summary>Batches that were submitted and are not on stable storage.</summary>
    public int Pending => writer.Pending;

    /// <summary>A turn begins.</summary>
    public void BeginTurn() => RefuseWrites = ports.Log.RefuseWrites;

    /// <summary>A tick of the node's clock.</summary>
    /// <param name="submitted">Last batch that was handed to the log.</param>
    /// <param name="persisted">Last batch that is on stable storage.</param>
    public void Tick(ulong submitted, ulong persisted)
    {
        InvariantException.Require(persisted <= submitted && submitted >= _seen,
            "batches are numbered upwards, and submitted before they are stored");
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
            ports.Report(
                $"Loop {loop}: the log's disk has not finished a write for {stalledMs} ms. This node hands its "
                    + $"leaderships over and seeks none until it does.");
        }
        else if (wasStalled && !IsStalled)
        {
            ports.Report($"Loop {loop}: the log's disk moves again.");
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
