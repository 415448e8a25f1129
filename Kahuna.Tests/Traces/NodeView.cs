namespace Kahuna.Tests.Traces;

/// <summary>
/// What the trace of one node says of one group: its log as written and as on stable storage, its promises and its
/// marks, over all its runs. Owned by one <see cref="GroupChecker"/>.
/// </summary>
internal sealed class NodeView(int node)
{
    private readonly Queue<TraceEvent> _pending = new();

    public int Node => node;

    /// <summary>The group was recovered in some run, so that what the log held before is known.</summary>
    public bool IsKnown { get; private set; }

    /// <summary>What was handed to the log, on stable storage or not.</summary>
    public LogImage Written { get; private set; } = new();

    public LogImage Durable { get; private set; } = new();

    /// <summary>What was on a disk that the node has lost since.</summary>
    public LogImage? Lost { get; private set; }

    /// <summary>Counts up with each lost disk.</summary>
    public int Disk { get; private set; }

    public ulong DurableTerm { get; private set; }

    public int DurableVote { get; private set; }

    public ulong Commit { get; set; }

    public ulong Applied { get; set; }

    /// <summary>
    /// Up to here everything is applied and on the disk, and nothing that is on its way there replaces it.
    /// </summary>
    public ulong Settled => _pending
        .Select(static next => next.Kind == TraceEventKind.Append ? next.First - 1 : next.Index)
        .Append(Durable.Last)
        .Append(Applied)
        .Min();

    /// <summary>The line that says so of the term or the vote.</summary>
    public TracePlace Promised { get; private set; }

    /// <summary>This entry is on the node's disk, or was before the disk was lost.</summary>
    public bool HasDurable(ulong index, TracedEntry entry) =>
        Durable.Holds(index, entry) || Lost?.Holds(index, entry) == true;

    public void LoseDisk()
    {
        Lost = Durable;
        Disk++;
        Written = new LogImage();
        Durable = new LogImage();
        DurableTerm = 0;
        DurableVote = 0;
    }

    public void BeginRun()
    {
        _pending.Clear();
        Commit = 0;
        Applied = 0;
    }

    /// <summary>What a start found is on stable storage, and all there is.</summary>
    public void Recover(TraceEvent found, LogImage image)
    {
        IsKnown = true;
        Written = image;
        Durable = image.Copy();
        Promise(found);
    }

    /// <summary>The bytes of an entry that was recovered.</summary>
    public void Replay(ulong index, TracedEntry entry)
    {
        Written[index] = entry;
        Durable[index] = entry;
    }

    public void Append(TraceEvent append)
    {
        Written.Append(append.First, append.Entries);
        _pending.Enqueue(append);
    }

    public void Restart(TraceEvent restart)
    {
        Written.Restart(restart.Index, restart.Term);
        _pending.Enqueue(restart);
    }

    public void Persist(TraceEvent persisted)
    {
        while (_pending.TryPeek(out TraceEvent? next) && next.Batch <= persisted.Batch)
        {
            _pending.Dequeue();
            if (next.Kind == TraceEventKind.Append)
            {
                Durable.Append(next.First, next.Entries);
            }
            else
            {
                Durable.Restart(next.Index, next.Term);
            }
        }

        Promise(persisted);
    }

    public void DropThrough(ulong index)
    {
        Written.DropThrough(index);
        Durable.DropThrough(index);
        Lost?.DropThrough(index);
    }

    private void Promise(TraceEvent said)
    {
        if (said.Term != DurableTerm || said.Vote != DurableVote)
        {
            Promised = said.Place;
        }

        DurableTerm = said.Term;
        DurableVote = said.Vote;
    }
}
