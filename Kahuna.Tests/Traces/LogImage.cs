namespace Kahuna.Tests.Traces;

/// <summary>What a log holds of a group, as a trace tells it. Not thread-safe.</summary>
internal sealed class LogImage
{
    private readonly List<TracedEntry> _entries = [];

    /// <summary>The index before the first entry.</summary>
    public ulong Start { get; private set; }

    /// <summary>0 when it is not known.</summary>
    public ulong StartTerm { get; private set; }

    public ulong Last => Start + (ulong)_entries.Count;

    public TracedEntry this[ulong index]
    {
        get => _entries[(int)(index - Start - 1)];
        set => _entries[(int)(index - Start - 1)] = value;
    }

    public bool Has(ulong index) => index > Start && index <= Last;

    /// <summary>It has this entry, or something that was made of it.</summary>
    public bool Holds(ulong index, TracedEntry entry) => index <= Start || (index <= Last && this[index].Agrees(entry));

    /// <summary>0 when it is not known.</summary>
    public ulong TermAt(ulong index) => index == Start ? StartTerm : Has(index) ? this[index].Term : 0;

    /// <summary>Adds entries from <paramref name="first"/> on; what it has from there on is dropped.</summary>
    public void Append(ulong first, IReadOnlyList<TracedEntry> entries)
    {
        _entries.RemoveRange((int)(first - Start - 1), (int)(Last + 1 - first));
        _entries.AddRange(entries);
    }

    public void Restart(ulong index, ulong term)
    {
        _entries.Clear();
        Start = index;
        StartTerm = term;
    }

    /// <summary>Forgets entries up to this one, which must be there or already forgotten.</summary>
    public void DropThrough(ulong index)
    {
        if (index > Start && index <= Last)
        {
            ulong term = this[index].Term;
            _entries.RemoveRange(0, (int)(index - Start));
            Start = index;
            StartTerm = term;
        }
    }

    public LogImage Copy()
    {
        LogImage copy = new() { Start = Start, StartTerm = StartTerm };
        copy._entries.AddRange(_entries);
        return copy;
    }
}
