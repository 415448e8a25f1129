using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// The terms of one group's entries that the log holds, as runs, and the term of the entry before them. Guarded by <see cref="LogPositions"/>.
/// </summary>
internal sealed class GroupTerms
{
    private readonly List<TermRun> _runs = [];

    /// <summary>The runs; the first one begins at the first entry that the log holds.</summary>
    public IReadOnlyList<TermRun> Runs => _runs;

    /// <summary>Term of the entry before the first one that the log holds; the default when it is not known.</summary>
    public Term StartTerm { get; private set; }

    /// <summary>Term of the last entry; the default when it is not known.</summary>
    public Term LastTerm => _runs.Count == 0 ? StartTerm : _runs[^1].Term;

    /// <summary>Begins anew, without entries.</summary>
    public void Restart(Term startTerm)
    {
        _runs.Clear();
        StartTerm = startTerm;
    }

    /// <summary>Drops the entries from <paramref name="first"/> on.</summary>
    public void Truncate(LogIndex first)
    {
        int keep = _runs.Count;
        while (keep > 0 && _runs[keep - 1].First >= first)
        {
            keep--;
        }

        _runs.RemoveRange(keep, _runs.Count - keep);
    }

    /// <summary>Takes in entries behind the last one.</summary>
    public void Add(LogIndex first, ReadOnlySpan<byte> entries)
    {
        for (LogIndex index = first; EntryCodec.TryRead(ref entries, out Term term, out _, out _); index = index.Next())
        {
            if (_runs.Count == 0 || _runs[^1].Term != term)
            {
                _runs.Add(new TermRun(index, term));
            }
        }
    }

    /// <summary>Forgets the entries up to <paramref name="start"/>, of which the log held the last; <paramref name="last"/> is the group's last entry.</summary>
    public void Cut(LogIndex start, LogIndex last)
    {
        int passed = 0;
        while (passed < _runs.Count && _runs[passed].First <= start)
        {
            passed++;
        }

        if (passed == 0)
        {
            return;
        }

        StartTerm = _runs[passed - 1].Term;
        LogIndex next = start.Next();
        bool goesOn = passed < _runs.Count ? _runs[passed].First > next : last > start;
        if (goesOn)
        {
            _runs[--passed] = new TermRun(next, StartTerm);
        }

        _runs.RemoveRange(0, passed);
    }
}
