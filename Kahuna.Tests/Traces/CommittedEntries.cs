namespace Kahuna.Tests.Traces;

/// <summary>
/// The committed entries of a group, in order, and the state's digest after each. Owned by one
/// <see cref="GroupChecker"/>.
/// </summary>
internal sealed class CommittedEntries
{
    private readonly LogImage _entries = new();
    private readonly Dictionary<ulong, (ulong Digest, int Node, TracePlace Place)> _digests = [];
    private ulong _digestsFrom = 1;

    public ulong Last => _entries.Last;

    public TracedEntry Latest => _entries[Last];

    /// <summary>The index before the first entry that is known.</summary>
    public ulong Start => _entries.Start;

    /// <summary>What is in the place of this committed entry, is it; true also when nothing is known of it.</summary>
    public bool Agrees(ulong index, TracedEntry entry) => !_entries.Has(index) || _entries[index].Agrees(entry);

    /// <summary>The log has this committed entry; true also when nothing is known of it.</summary>
    public bool AreIn(LogImage log, ulong index) => !_entries.Has(index) || log.Holds(index, _entries[index]);

    public bool IsOfTerm(ulong index, ulong term) =>
        index <= Last && (_entries.TermAt(index) is var known && (known == 0 || known == term));

    public TracedEntry this[ulong index] => _entries[index];

    /// <summary>The trace begins with a cluster that had committed this much before.</summary>
    public void BeginAfter(ulong index, ulong term) => _entries.Restart(index, term);

    public void Add(TracedEntry entry) => _entries.Append(Last + 1, [entry]);

    /// <summary>The bytes of an entry are known now.</summary>
    public void Complete(ulong index, TracedEntry entry)
    {
        if (_entries.Has(index) && _entries[index].Hash == 0 && _entries[index].Agrees(entry))
        {
            _entries[index] = entry;
        }
    }

    /// <summary>Compares the state's digest after an entry with what other nodes had.</summary>
    public void CheckDigest(TraceEvent source, ulong index, ulong digest)
    {
        if (index >= _digestsFrom
            && !_digests.TryAdd(index, (digest, source.Node, source.Place))
            && _digests[index] is var other
            && other.Digest != digest)
        {
            throw new BrokenRuleException(
                "equal states after equal entries",
                $"group {source.Group}: after entry {index} the states of nodes {other.Node} and {source.Node} have "
                    + $"the digests {other.Digest:x16} and {digest:x16}",
                [other.Place, source.Place]);
        }
    }

    public void DropThrough(ulong index)
    {
        _entries.DropThrough(index);
        for (; _digestsFrom <= index; _digestsFrom++)
        {
            _digests.Remove(_digestsFrom);
        }
    }
}
