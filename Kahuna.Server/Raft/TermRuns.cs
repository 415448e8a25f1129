using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The term of every index of a log, as a short list of runs. The list grows with elections, not with entries, so it
/// stays in memory when the entries do not. Owned by one <see cref="EntryLog"/>; not thread-safe.
/// </summary>
internal sealed class TermRuns
{
    // The first element is the entry before the first one: its index and term, both 0 if the log was never cut.
    private readonly List<TermRun> _runs = new(16);

    public TermRuns(RaftStart start)
    {
        InvariantException.Require(
            (start.Start.Value == 0) == (start.StartTerm.Value == 0), "the term before the first entry is known");
        _runs.Add(new TermRun(start.Start, start.StartTerm));
        LogIndex first = default;
        foreach (TermRun run in start.Terms)
        {
            InvariantException.Require(
                first.Value == 0 ? run.First == start.Start.Next() : run.First > first,
                "term runs begin at the first entry and ascend");
            Add(run.First, run.Term);
            first = run.First;
        }

        LastFirst = first;
    }

    /// <summary>The index before the first entry.</summary>
    public LogIndex Start => _runs[0].First;

    public Term LastTerm => _runs[^1].Term;

    /// <summary>First index of the last run that the log started with; 0 if it started without entries.</summary>
    public LogIndex LastFirst { get; }

    /// <summary>The term at an index of the log, or at its start.</summary>
    public Term At(LogIndex index)
    {
        int position = Find(index);
        InvariantException.Require(position >= 0, "an index at or behind the log's start has a term");
        return _runs[position].Term;
    }

    /// <summary>Extends the last run, or begins one if the term is new.</summary>
    public void Add(LogIndex index, Term term)
    {
        if (_runs[^1].Term == term)
        {
            return;
        }

        InvariantException.Require(term > LastTerm, "terms never decrease along a log");
        _runs.Add(new TermRun(index, term));
    }

    /// <summary>Forgets the entries from <paramref name="from"/> on.</summary>
    public void Cut(LogIndex from)
    {
        InvariantException.Require(from > Start, "the place before the first entry stays known");
        while (_runs[^1].First >= from)
        {
            _runs.RemoveAt(_runs.Count - 1);
        }
    }

    /// <summary>Forgets the terms below <paramref name="index"/>, which becomes the start.</summary>
    public void CutThrough(LogIndex index)
    {
        int position = Find(index);
        _runs[position] = new TermRun(index, _runs[position].Term);
        _runs.RemoveRange(0, position);
    }

    /// <summary>Forgets everything; the log is empty and starts at this entry.</summary>
    public void Restart(LogIndex index, Term term)
    {
        _runs.Clear();
        _runs.Add(new TermRun(index, term));
    }

    /// <summary>
    /// The last index at or below <paramref name="index"/> whose term is at most <paramref name="term"/>; 0 if there is
    /// none above or at the start. Skips whole terms.
    /// </summary>
    public LogIndex LastAtMost(LogIndex index, Term term)
    {
        LogIndex candidate = index;
        for (int i = Find(index); i >= 0; i--)
        {
            if (_runs[i].Term <= term)
            {
                return candidate;
            }

            candidate = _runs[i].First.Previous();
        }

        return default;
    }

    private int Find(LogIndex index)
    {
        ReadOnlySpan<TermRun> runs = CollectionsMarshal.AsSpan(_runs);
        if (runs.Length > 0 && runs[^1].First <= index)
        {
            return runs.Length - 1;
        }

        int low = 0;
        int high = runs.Length - 1;
        while (low <= high)
        {
            int middle = (low + high) >>> 1;
            if (runs[middle].First <= index)
            {
                low = middle + 1;
            }
            else
            {
                high = middle - 1;
            }
        }

        return high;
    }
}
