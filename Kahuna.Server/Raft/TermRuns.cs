using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The term of every index of a log, as a short list of runs: it grows with elections, not with entries, so that it stays
/// in memory when the entries do not. Owned by one <see cref="EntryLog"/>; not thread-safe.
/// </summary>
internal sealed class TermRuns
{
    private readonly List<TermRun> _runs = new(16);

    public TermRuns(IReadOnlyList<TermRun> runs)
    {
        foreach (TermRun run in runs)
        {
            InvariantException.Require(
                _runs.Count == 0 ? run.First.Value == 1 : run.First > _runs[^1].First,
                "term runs begin at index 1 and ascend");
            Add(run.First, run.Term);
        }
    }

    public Term LastTerm => _runs.Count == 0 ? default : _runs[^1].Term;

    /// <summary>Begin of the last run; the default for an empty log.</summary>
    public LogIndex LastFirst => _runs.Count == 0 ? default : _runs[^1].First;

    /// <summary>The term at an index of the log; term 0 at index 0.</summary>
    public Term At(LogIndex index)
    {
        if (index.Value == 0)
        {
            return default;
        }

        int position = Find(index);
        InvariantException.Require(position >= 0, "an index of the log has a term");
        return _runs[position].Term;
    }

    /// <summary>An entry of <paramref name="term"/> was appended at <paramref name="index"/>.</summary>
    public void Add(LogIndex index, Term term)
    {
        if (_runs.Count > 0 && _runs[^1].Term == term)
        {
            return;
        }

        InvariantException.Require(term > LastTerm, "terms never decrease along a log");
        _runs.Add(new TermRun(index, term));
    }

    /// <summary>Entries at and above <paramref name="from"/> are gone.</summary>
    public void Cut(LogIndex from)
    {
        while (_runs.Count > 0 && _runs[^1].First >= from)
        {
            _runs.RemoveAt(_runs.Count - 1);
        }
    }

    /// <summary>The last index at or below <paramref name="index"/> whose term is at most <paramref name="term"/>; 0 when there is none. Skips whole terms.</summary>
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
