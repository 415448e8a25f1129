namespace Kahuna.Tests.Traces;

/// <summary>
/// The rules of Raft for one group, over the traces of all nodes and all their runs. Takes the events in the order of
/// their times; throws <see cref="BrokenRuleException"/>. Owned by one <see cref="TraceChecker"/>.
/// </summary>
/// <param name="group">Its number.</param>
/// <param name="voters">Number of nodes.</param>
/// <param name="keptEntries">Entries that every node has stored and applied are forgotten but for at least this many,
/// against which a restarted node is compared.</param>
internal sealed class GroupChecker(uint group, int voters, ulong keptEntries)
{
    private readonly SortedDictionary<int, NodeView> _nodes = [];
    private readonly EntryTable _entries = new();
    private readonly CommittedEntries _committed = new();
    private readonly LeaderTable _leaders = new();
    private readonly Dictionary<(int Node, ulong Term), (int Candidate, int Disk, TracePlace Place)> _votes = [];
    private ulong _droppedThrough;

    public long Entries => _entries.Count;

    public int Leaders => _leaders.Count;

    public int Votes => _votes.Count;

    public ulong Committed => _committed.Last;

    /// <summary>A node was started.</summary>
    public void Start(int node, bool lostDisk)
    {
        NodeView view = View(node);
        if (lostDisk)
        {
            view.LoseDisk();
        }

        view.BeginRun();
        _leaders.Ended(node);
    }

    public void Take(TraceEvent e)
    {
        NodeView view = View(e.Node);
        if (!view.IsKnown && e.Kind != TraceEventKind.Recover)
        {
            throw new TraceException(
                e.Place, $"comes before the line that says what the start of node {e.Node} found of group {group}");
        }

        switch (e.Kind)
        {
            case TraceEventKind.Recover:
                Recover(e, view);
                break;
            case TraceEventKind.Replay:
                Replay(e, view);
                break;
            case TraceEventKind.State:
                LoadState(e, view);
                break;
            case TraceEventKind.BecomeLeader:
                BecomeLeader(e, view);
                break;
            case TraceEventKind.Vote:
                Vote(e, view);
                break;
            case TraceEventKind.Append:
                Append(e, view);
                break;
            case TraceEventKind.Restart:
                Require(
                    _committed.IsOfTerm(e.Index, e.Term),
                    "only what is committed is installed",
                    e,
                    $"node {e.Node} begins its log after entry {e.Index} of term {e.Term}; "
                        + $"{_committed.Last} are committed");
                view.Restart(e);
                break;
            case TraceEventKind.Persisted:
                Persist(e, view);
                break;
            case TraceEventKind.Commit:
                Commit(e, view);
                break;
            case TraceEventKind.Apply:
                Apply(e, view);
                break;
            default:
                Acknowledge(e, view);
                break;
        }
    }

    // ---- Starts

    private void Recover(TraceEvent e, NodeView view)
    {
        RequirePromises(e, view);
        LogImage image = ImageOf(e);
        for (ulong index = Math.Max(image.Start, _committed.Start) + 1;
            index <= Math.Min(_committed.Last, view.Durable.Last);
            index++)
        {
            Require(
                !view.Durable.Holds(index, _committed[index]) || image.Holds(index, _committed[index]),
                "a committed entry never changes",
                e,
                $"node {e.Node} had entry {index} {_committed[index]} on its disk, and its start did not find it");
        }

        bool isFirst = !view.IsKnown;
        view.Recover(e, image);
        view.Commit = e.Commit;
        if (isFirst)
        {
            BeginWith(image, e.Commit);
        }

        CheckCommit(e, view);
    }

    /// <summary>What a node had committed before its trace begins, nobody can check.</summary>
    private void BeginWith(LogImage image, ulong commit)
    {
        if (commit > _committed.Last && image.Start > _committed.Last)
        {
            _committed.BeginAfter(image.Start, image.StartTerm);
        }

        while (_committed.Last < commit)
        {
            _committed.Add(image[_committed.Last + 1]);
        }
    }

    private LogImage ImageOf(TraceEvent e)
    {
        LogImage image = new();
        image.Restart(e.LogStart, e.LogStartTerm);
        List<TracedEntry> entries = [];
        int run = -1;
        for (ulong index = e.LogStart + 1; index <= e.Last; index++)
        {
            run += run + 1 < e.Runs.Count && e.Runs[run + 1].First <= index ? 1 : 0;
            entries.Add(run >= 0 ? _entries.Complete(index, e.Runs[run].Term) : throw new TraceException(
                e.Place, $"says no term of entry {index}"));
        }

        image.Append(e.LogStart + 1, entries);
        return image;
    }

    private void Replay(TraceEvent e, NodeView view)
    {
        for (int i = 0; i < e.Entries.Count; i++)
        {
            ulong index = e.First + (ulong)i;
            Require(
                view.Written.TermAt(index) == e.Entries[i].Term,
                "log matching",
                e,
                $"node {e.Node} reads entry {index} {e.Entries[i]}, and found one of term "
                    + $"{view.Written.TermAt(index)}");
            if (index > _droppedThrough)
            {
                _entries.Note(e, index, view.Written.TermAt(index - 1), e.Entries[i]);
            }

            Require(
                index > view.Commit || _committed.Agrees(index, e.Entries[i]),
                "a committed entry never changes",
                e,
                $"node {e.Node} reads another committed entry {index}");
            _committed.Complete(index, e.Entries[i]);
            view.Replay(index, e.Entries[i]);
        }
    }

    private void LoadState(TraceEvent e, NodeView view)
    {
        Require(
            e.Index >= view.Applied,
            "entries are applied once and in order",
            e,
            $"node {e.Node} goes back to the state after entry {e.Index}, and had applied {view.Applied}");
        Require(
            _committed.IsOfTerm(e.Index, e.Term),
            "only what is committed is applied",
            e,
            $"node {e.Node} has the state after entry {e.Index} of term {e.Term}; {_committed.Last} are committed");
        _committed.CheckDigest(e, e.Index, e.Digests[0]);
        view.Applied = e.Index;
        view.Commit = Math.Max(view.Commit, e.Index);
    }

    // ---- Terms, votes, leaders

    private void RequirePromises(TraceEvent e, NodeView view)
    {
        Require(
            e.Term >= view.DurableTerm,
            "a term never goes back",
            e,
            $"node {e.Node} has term {e.Term} on its disk, and had {view.DurableTerm}",
            view.Promised);
        Require(
            e.Term > view.DurableTerm || view.DurableVote == 0 || view.DurableVote == e.Vote,
            "one vote per node and term",
            e,
            $"node {e.Node} has a vote for {e.Vote} in term {e.Term} on its disk, and had one for {view.DurableVote}",
            view.Promised);
    }

    private void BecomeLeader(TraceEvent e, NodeView view)
    {
        Require(
            e.Term >= view.DurableTerm,
            "a term never goes back",
            e,
            $"node {e.Node} leads in term {e.Term}, and has {view.DurableTerm} on its disk",
            view.Promised);
        Require(
            e.Term == view.DurableTerm,
            "a term is durable before it is used",
            e,
            $"node {e.Node} leads in term {e.Term}, and has {view.DurableTerm} on its disk");
        (int Node, TracePlace Place)? other = _leaders.Add(e, _committed.Last);
        Require(
            other is null,
            "one leader per term",
            e,
            $"nodes {other?.Node} and {e.Node} lead in term {e.Term}",
            other?.Place ?? default);
        ulong known = _leaders.CommittedBefore(e.Term);
        Require(
            view.Written.Last >= known && _committed.AreIn(view.Written, known),
            "leader completeness",
            e,
            $"node {e.Node} leads in term {e.Term} with {view.Written.Last} entries, and lacks "
                + $"the committed entry {known}");
    }

    private void Vote(TraceEvent e, NodeView view)
    {
        Require(
            view.DurableTerm >= e.Term,
            "a term is durable before it is used",
            e,
            $"node {e.Node} votes in term {e.Term}, and has {view.DurableTerm} on its disk");
        Require(
            view.DurableTerm > e.Term || view.DurableVote == e.Vote,
            "one vote per node and term",
            e,
            $"node {e.Node} votes for {e.Vote} in term {e.Term}, and has a vote for {view.DurableVote} on its disk",
            view.Promised);
        if (!_votes.TryAdd((e.Node, e.Term), (e.Vote, view.Disk, e.Place)))
        {
            // Who lost its disk has spent its vote of the terms of that time on itself; a candidate's own vote of then
            // is no other one.
            (int candidate, int disk, TracePlace place) = _votes[(e.Node, e.Term)];
            Require(
                candidate == e.Vote || (candidate == e.Node && disk < view.Disk),
                "one vote per node and term",
                e,
                $"node {e.Node} votes for {e.Vote} in term {e.Term}, and did for {candidate}",
                place);
        }
    }

    // ---- The log

    private void Append(TraceEvent e, NodeView view)
    {
        LogImage log = view.Written;
        Require(
            e.First > log.Start && e.First <= log.Last + 1,
            "a log has no gaps",
            e,
            $"node {e.Node} appends from entry {e.First} on, and has {log.Start + 1} to {log.Last}");
        ulong last = e.First + (ulong)e.Entries.Count - 1;
        ulong previous = log.TermAt(e.First - 1);
        for (int i = 0; i < e.Entries.Count; i++)
        {
            ulong index = e.First + (ulong)i;
            if (index > _droppedThrough)
            {
                _entries.Note(e, index, previous, e.Entries[i]);
            }

            Require(
                index > view.Commit || _committed.Agrees(index, e.Entries[i]),
                "a committed entry never changes",
                e,
                $"node {e.Node} puts entry {index} {e.Entries[i]} in the place of a committed one");
            previous = e.Entries[i].Term;
        }

        for (ulong index = Math.Max(e.First, _committed.Start + 1);
            index <= Math.Min(log.Last, _committed.Last);
            index++)
        {
            bool held = log.Holds(index, _committed[index]);
            Require(
                !held || (index <= last && _committed[index].Agrees(e.Entries[(int)(index - e.First)])),
                "a committed entry never changes",
                e,
                $"node {e.Node} drops the committed entry {index} {_committed[index]}");
        }

        view.Append(e);
    }

    private void Persist(TraceEvent e, NodeView view)
    {
        RequirePromises(e, view);
        view.Persist(e);
        ulong term = view.Durable.TermAt(e.Index);
        if (view.Durable.Last != e.Index || (term != e.IndexTerm && term != 0 && e.IndexTerm != 0))
        {
            throw new TraceException(
                e.Place,
                $"says that entry {e.Index} of term {e.IndexTerm} is the last on the disk of node {e.Node}, and what "
                    + $"was appended up to batch {e.Batch} ends with entry {view.Durable.Last} of term "
                    + $"{view.Durable.TermAt(view.Durable.Last)}");
        }
    }

    private void Commit(TraceEvent e, NodeView view)
    {
        Require(
            e.Index > view.Commit,
            "a commit index never goes back",
            e,
            $"node {e.Node} commits {e.Index} after {view.Commit}");
        Require(
            e.Index <= view.Written.Last,
            "only what is in a log is committed",
            e,
            $"node {e.Node} commits {e.Index}, and has {view.Written.Last} entries");
        ulong written = view.Written.TermAt(e.Index);
        Require(
            written == 0 || written == e.Term,
            "a committed entry never changes",
            e,
            $"node {e.Node} commits entry {e.Index} of term {e.Term}, and wrote one of term {written}");
        view.Commit = e.Index;
        CheckCommit(e, view);
    }

    private void CheckCommit(TraceEvent e, NodeView view)
    {
        while (_committed.Last < view.Commit)
        {
            ulong index = _committed.Last + 1;
            Require(
                view.Written.Has(index),
                "only what is in a log is committed",
                e,
                $"node {e.Node} commits {view.Commit}, and has entries "
                    + $"{view.Written.Start + 1} to {view.Written.Last}");
            TracedEntry entry = view.Written[index];
            RequireDurable(e, index, entry, "what is committed is on the disks of a majority");
            if (_leaders.Newest is { } leader && leader.Term > entry.Term)
            {
                Require(
                    _nodes[leader.Node].Written.Holds(index, entry),
                    "leader completeness",
                    e,
                    $"entry {index} {entry} is committed, and node {leader.Node}, which leads in "
                        + $"term {leader.Term}, lacks it",
                    leader.Place);
            }

            _committed.Add(entry);
        }

        Require(
            _committed.AreIn(view.Written, view.Commit),
            "a committed entry never changes",
            e,
            $"node {e.Node} has another committed entry {view.Commit}");
    }

    private void Apply(TraceEvent e, NodeView view)
    {
        Require(
            e.First == view.Applied + 1,
            "entries are applied once and in order",
            e,
            $"node {e.Node} applies from entry {e.First} on, and has applied {view.Applied}");
        ulong last = e.First + (ulong)e.Digests.Count - 1;
        Require(
            last <= view.Commit,
            "only what is committed is applied",
            e,
            $"node {e.Node} applies up to entry {last}, and has committed {view.Commit}");
        for (int i = 0; i < e.Digests.Count; i++)
        {
            _committed.CheckDigest(e, e.First + (ulong)i, e.Digests[i]);
        }

        view.Applied = last;
        Drop();
    }

    private void Acknowledge(TraceEvent e, NodeView view)
    {
        Require(
            e.Index <= view.Commit && _committed.IsOfTerm(e.Index, e.Term),
            "an acknowledged write is committed",
            e,
            $"node {e.Node} acknowledges entry {e.Index} of term {e.Term}; {view.Commit} are committed there");
        if (e.Index > _committed.Start)
        {
            RequireDurable(e, e.Index, _committed[e.Index], "an acknowledged write is on the disks of a majority");
        }
    }

    private void RequireDurable(TraceEvent e, ulong index, TracedEntry entry, string rule)
    {
        int durable = 0;
        foreach (NodeView node in _nodes.Values)
        {
            durable += node.HasDurable(index, entry) ? 1 : 0;
        }

        if (durable <= voters / 2)
        {
            string disks = string.Join(", ", _nodes.Values.Select(node => $"node {node.Node} has {node.Durable.Last}"));
            Require(
                holds: false,
                rule,
                e,
                $"entry {index} {entry} is on {durable} of {voters} disks ({disks}), as node {e.Node} says "
                    + $"{e.Kind.ToString().ToLowerInvariant()}");
        }
    }

    /// <summary>What every node has stored and applied long ago is forgotten.</summary>
    private void Drop()
    {
        ulong everywhere = _nodes.Count == voters ? _nodes.Values.Min(static node => node.Settled) : 0;
        if (everywhere > _droppedThrough + (2 * keptEntries))
        {
            _droppedThrough = everywhere - keptEntries;
            _entries.DropThrough(_droppedThrough);
            _committed.DropThrough(_droppedThrough);
            foreach (NodeView node in _nodes.Values)
            {
                node.DropThrough(_droppedThrough);
            }
        }
    }

    private NodeView View(int node) =>
        _nodes.TryGetValue(node, out NodeView? view) ? view : _nodes[node] = new NodeView(node);

    private void Require(bool holds, string rule, TraceEvent e, string words, TracePlace other = default)
    {
        if (!holds)
        {
            throw new BrokenRuleException(
                rule, $"group {group}: {words}", other.File is null ? [e.Place] : [other, e.Place]);
        }
    }
}
