namespace Kahuna.Tests.Traces;

/// <summary>
/// All entries of a group that any log had: entries of equal index and term are equal, and so are the entries before
/// them (log matching). Owned by one <see cref="GroupChecker"/>.
/// </summary>
internal sealed class EntryTable
{
    private readonly Dictionary<(ulong Index, ulong Term), Known> _known = [];
    private readonly Queue<(ulong Index, ulong Term)> _order = new();

    /// <summary>Different entries so far.</summary>
    public long Count { get; private set; }

    /// <summary>The entry of this term with the hash of its bytes, as far as any trace shows them.</summary>
    public TracedEntry Complete(ulong index, ulong term) =>
        new(term, _known.TryGetValue((index, term), out Known known) ? known.Hash : 0);

    /// <summary>A log has this entry after one of <paramref name="previousTerm"/> (0: not known).</summary>
    public void Note(TraceEvent source, ulong index, ulong previousTerm, TracedEntry entry)
    {
        (ulong, ulong) key = (index, entry.Term);
        if (!_known.TryGetValue(key, out Known known))
        {
            Count++;
            _known.Add(key, new Known(previousTerm, entry.Hash, source.Node, source.Place));
            _order.Enqueue(key);
            return;
        }

        bool equal = known.Hash == entry.Hash
            && (known.PreviousTerm == previousTerm || known.PreviousTerm == 0 || previousTerm == 0);
        if (!equal)
        {
            string what = known.Hash == entry.Hash
                ? $"follows on term {previousTerm} on node {source.Node} and on term "
                    + $"{known.PreviousTerm} on node {known.Node}"
                : $"differs on nodes {known.Node} and {source.Node}";
            throw new BrokenRuleException(
                "log matching",
                $"group {source.Group}: entry {index} of term {entry.Term} {what}",
                [known.Place, source.Place]);
        }

        if (known.PreviousTerm == 0 && previousTerm != 0)
        {
            _known[key] = known with { PreviousTerm = previousTerm };
        }
    }

    /// <summary>Entries up to this one are not needed any more.</summary>
    public void DropThrough(ulong index)
    {
        while (_order.TryPeek(out (ulong Index, ulong Term) oldest) && oldest.Index <= index)
        {
            _known.Remove(_order.Dequeue());
        }
    }

    private readonly record struct Known(ulong PreviousTerm, ulong Hash, int Node, TracePlace Place);
}
