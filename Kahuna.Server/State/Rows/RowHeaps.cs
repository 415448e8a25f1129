namespace Kahuna.Server.State.Rows;

/// <summary>
/// The rows that have a time, one order for each <see cref="RowHeap"/>. Owned by one <see cref="KeyStore"/>; not
/// thread-safe.
/// </summary>
internal sealed class RowHeaps
{
    private readonly ExpiryHeap[] _heaps;

    public RowHeaps(KeyTable keys)
    {
        _heaps = new ExpiryHeap[(int)RowHeap.Grants + 1];
        for (int i = 0; i < _heaps.Length; i++)
        {
            _heaps[i] = new ExpiryHeap(keys);
        }

        Deadlines = this[RowHeap.Deadlines];
    }

    /// <summary>The heap of keys that expire, which every write asks.</summary>
    public ExpiryHeap Deadlines { get; }

    /// <summary>Bytes of all of them.</summary>
    public long Bytes
    {
        get
        {
            long bytes = 0;
            foreach (ExpiryHeap heap in _heaps)
            {
                bytes += heap.Bytes;
            }

            return bytes;
        }
    }

    public ExpiryHeap this[RowHeap heap] => _heaps[(int)heap];
}
