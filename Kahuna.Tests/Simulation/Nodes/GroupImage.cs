using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// What one node's log has of a group, as the calls that it got say: entries, where they begin, hard state. Never cut.
/// Not thread-safe.
/// </summary>
internal sealed class GroupImage
{
    private readonly List<EntryId> _entries = [];

    /// <summary>The index before the first entry.</summary>
    public ulong Start { get; private set; }

    public ulong Last => Start + (ulong)_entries.Count;

    public HardState HardState { get; set; }

    /// <summary>Counts up with every change of the entries.</summary>
    public int Version { get; private set; }

    public EntryId this[ulong index] => _entries[(int)(index - Start - 1)];

    /// <summary>It has this entry, or something that was made of it.</summary>
    public bool Holds(ulong index, EntryId entry) => index <= Start || (index <= Last && this[index] == entry);

    public void Append(ulong first, IReadOnlyList<EntryId> entries)
    {
        if (first <= Start || first > Last + 1)
        {
            throw new InvalidOperationException($"Entries from {first} on do not follow on {Start} to {Last}.");
        }

        _entries.RemoveRange((int)(first - Start - 1), (int)(Last + 1 - first));
        _entries.AddRange(entries);
        Version++;
    }

    public void Restart(ulong index)
    {
        Version++;
        _entries.Clear();
        Start = index;
    }

    public GroupImage Copy()
    {
        GroupImage copy = new() { Start = Start, HardState = HardState };
        copy._entries.AddRange(_entries);
        return copy;
    }

    /// <summary>Why what was found after a restart is not this, or null.</summary>
    public string? Differs(GroupImage found)
    {
        if (found.HardState != HardState)
        {
            return $"hard state {found.HardState}, not {HardState}";
        }

        if (found.Last != Last)
        {
            return $"last entry {found.Last}, not {Last}";
        }

        if (found.Start < Start)
        {
            return $"entries from {found.Start + 1} on, not from {Start + 1} on";
        }

        for (ulong index = found.Start + 1; index <= Last; index++)
        {
            if (found[index] != this[index])
            {
                return $"another entry {index}: {found[index]}, not {this[index]}";
            }
        }

        return null;
    }
}
