using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State;

/// <summary>
/// Brings what the next commands touch into the processor's caches, for many at a time. Among a million keys each
/// command waits for memory several times, for one place after the other; asked for in groups, the places of all its
/// commands arrive together. Changes no state. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class Prefetcher(KeyStore store)
{
    /// <summary>Commands of one group: their lines fit the first cache many times over.</summary>
    public const int CommandsMax = 32;

    /// <summary>Lines of a key and its value; what follows in longer ones, the processor foresees by itself.</summary>
    private const int BlockLinesMax = 4;

    private readonly uint[] _hashes = new uint[CommandsMax];
    private readonly int[] _rows = new int[CommandsMax];
    private int _count;
    private int _known;

    /// <summary>One more key of the group.</summary>
    public void Add(ReadOnlySpan<byte> key)
    {
        uint hash = store.Keys.HashOf(key);
        store.Keys.PrefetchBucket(hash);
        _hashes[_count++] = hash;
    }

    /// <summary>Asks for all that reads of the group's keys touch, and begins a new group.</summary>
    public void PrefetchReads()
    {
        PrefetchRows();
        for (int i = 0; i < _count; i++)
        {
            store.Keys.PrefetchBlock(_rows[i], BlockLinesMax);
        }

        (_known, _count) = (_count, 0);
    }

    /// <summary>
    /// Asks for all that writes of the group's keys touch, replaced revisions that they will push out included, and
    /// begins a new group.
    /// </summary>
    public void PrefetchWrites()
    {
        PrefetchRows();
        for (int i = 0; i < _count; i++)
        {
            // Of a value that goes to history, only the key is read, in the block's first line.
            store.Keys.PrefetchBlock(_rows[i], 1);
            store.History.PrefetchNewest(_rows[i]);
        }

        store.History.PrefetchEarliest(_count, BlockLinesMax);
        (_known, _count) = (_count, 0);
    }

    /// <summary>
    /// The hash of the group's i-th key, counted from 0, so that it is computed once: hashing with a secret takes a
    /// seventh of a read whose lines are here. Unknown past the group's end.
    /// </summary>
    public KnownHash HashOf(int i) => (uint)i < (uint)_known ? new KnownHash(_hashes[i]) : default;

    /// <summary>There is no group: what is applied next was not looked at.</summary>
    public void Forget() => _known = 0;

    private void PrefetchRows()
    {
        for (int i = 0; i < _count; i++)
        {
            _rows[i] = store.Keys.PrefetchRow(_hashes[i]);
        }
    }
}
