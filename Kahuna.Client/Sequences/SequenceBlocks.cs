using System.Collections.Concurrent;

namespace Kahuna.Client.Sequences;

/// <summary>The blocks of the fast mode, one for each name and size, as many as are in use and at most <see cref="CountMax"/>. Owned by <see cref="Sequences"/>; any thread.</summary>
internal sealed class SequenceBlocks(Sequences sequences, TimeProvider time)
{
    /// <summary>About a MB. A program that draws names without end must not fill its memory with them.</summary>
    public const int CountMax = 4096;

    private readonly ConcurrentDictionary<(string Name, int Size), SequenceBlock> _blocks = new();

    public int Count => _blocks.Count;

    /// <summary>The block of a name and a size. False when there is none and no room for one: values are then taken one by one.</summary>
    public bool TryGet(string name, int size, [System.Diagnostics.CodeAnalysis.NotNullWhen(true)] out SequenceBlock? block)
    {
        if (_blocks.TryGetValue((name, size), out block))
        {
            return true;
        }

        if (_blocks.Count >= CountMax)
        {
            DropIdle();
        }

        if (_blocks.Count >= CountMax)
        {
            return false;
        }

        block = _blocks.GetOrAdd((name, size), static (key, self) => self.Make(key.Name, key.Size), this);
        return true;
    }

    /// <summary>A sequence is gone: what was taken of it is handed out no more.</summary>
    public void Drop(string name)
    {
        foreach ((string Name, int Size) key in _blocks.Keys)
        {
            if (key.Name == name)
            {
                _blocks.TryRemove(key, out _);
            }
        }
    }

    private SequenceBlock Make(string name, int size) => new(sequences, name, size, time);

    /// <summary>Drops blocks without a value. Whoever has just got one goes on with it; its values are used by that call only.</summary>
    private void DropIdle()
    {
        foreach (KeyValuePair<(string Name, int Size), SequenceBlock> pair in _blocks)
        {
            if (pair.Value.IsIdle)
            {
                _blocks.TryRemove(pair);
            }
        }
    }
}
