using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>The runs of terms of every group's log, as recovery reads them. Filled by recovery, read-only afterwards.</summary>
internal sealed class RecoveredTerms
{
    private readonly Dictionary<uint, List<TermRun>> _groups = [];

    public IReadOnlyList<TermRun> Of(GroupId group) => _groups.TryGetValue(group.Value, out List<TermRun>? runs) ? runs : [];

    /// <summary>Takes in entries; those that the group had at or above the first are dropped. False when the bytes are not that many entries.</summary>
    public bool Add(GroupId group, ulong first, uint count, ReadOnlySpan<byte> entries)
    {
        if (!_groups.TryGetValue(group.Value, out List<TermRun>? runs))
        {
            _groups[group.Value] = runs = [];
        }

        while (runs.Count > 0 && runs[^1].First.Value >= first)
        {
            runs.RemoveAt(runs.Count - 1);
        }

        for (uint i = 0; i < count; i++)
        {
            if (!EntryCodec.TryRead(ref entries, out Term term, out _, out _))
            {
                return false;
            }

            if (runs.Count == 0 || runs[^1].Term != term)
            {
                runs.Add(new TermRun(new LogIndex(first + i), term));
            }
        }

        return entries.IsEmpty;
    }
}
