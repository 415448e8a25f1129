using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What the groups of a loop hand to the log, one batch for each round of a turn, and which of them are told when a
/// batch is on stable storage. Batches are numbered upwards from 1. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LogBatch(ILogWriter log)
{
    private readonly Ring<Confirmation> _confirmations = new(64);
    private int _unnumbered;

    /// <summary>Number of the last batch that was submitted; what is added now is in the next one.</summary>
    public ulong Submitted { get; private set; }

    /// <summary>Everything up to this batch is on stable storage.</summary>
    public ulong Persisted { get; private set; }

    /// <summary>Adds entries [first, last], and tells the group when they are on stable storage.</summary>
    public void Append(Group group, RaftCore core, LogIndex first, LogIndex last, Term lastTerm)
    {
        int count = (int)(last.Value - first.Value + 1);
        int bytes = checked((int)core.EntryBytes(first, last));
        core.CopyEntries(first, count, log.BeginAppend(group.Id, first, count, bytes));
        log.EndAppend();
        Confirm(new Confirmation(group, last, lastTerm));
    }

    /// <summary>Adds a hard state that rests on the entries of its batch; nobody is told.</summary>
    public void Save(GroupId id, in HardState state) => log.Save(id, state);

    /// <summary>Adds a hard state that stands alone, and tells the group when it is on stable storage.</summary>
    /// <param name="group">The group that is told.</param>
    /// <param name="id">Under which group the log keeps it.</param>
    /// <param name="state">The hard state.</param>
    public void SaveAlone(Group group, GroupId id, in HardState state)
    {
        log.Save(id, state);
        Confirm(new Confirmation(group, default, default));
    }

    /// <summary>
    /// The group's log begins anew after this entry; the group is told when that is on stable storage.
    /// </summary>
    public void Restart(Group group, LogIndex index, Term term)
    {
        log.Restart(group.Id, index, term);
        Confirm(new Confirmation(group, index, term));
    }

    /// <summary>Asks for entries for a follower that is behind what memory holds.</summary>
    public void Fetch(GroupId id, in LogFetch fetch) => log.Fetch(id, fetch.Follower, fetch.First, fetch.BytesMax);

    /// <summary>
    /// Submits what was added. Returns the batch after which everything that was added so far is on stable storage.
    /// </summary>
    public ulong Submit()
    {
        ulong batch = log.Submit();
        if (batch != 0)
        {
            InvariantException.Require(batch == Submitted + 1, "the log numbers its batches one by one");
            Submitted = batch;
        }

        int numbered = _confirmations.Count - _unnumbered;
        InvariantException.Require(numbered >= 0 && (numbered == 0 || _confirmations[numbered - 1].Batch <= Submitted),
            "groups are told in the order of the batches");
        for (int i = numbered; i < _confirmations.Count; i++)
        {
            _confirmations[i].Batch = Submitted;
        }

        _unnumbered = 0;
        return Submitted;
    }

    /// <summary>The log says that everything up to this batch is on stable storage.</summary>
    public void MarkPersisted(ulong batch)
    {
        InvariantException.Require(batch <= Submitted, "only what was submitted is on stable storage");
        Persisted = Math.Max(Persisted, batch);
    }

    /// <summary>Takes the next group that is to be told. Its turn to be told is over when it is taken.</summary>
    public bool TryTakeConfirmed(out Confirmation confirmation)
    {
        confirmation = default;
        if (_confirmations.Count == _unnumbered || _confirmations[0].Batch > Persisted)
        {
            return false;
        }

        confirmation = _confirmations.Take();
        return true;
    }

    private void Confirm(in Confirmation confirmation)
    {
        _confirmations.Add(confirmation);
        _unnumbered++;
    }
}
