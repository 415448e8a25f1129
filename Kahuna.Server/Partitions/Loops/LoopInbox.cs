namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// A loop's bounded inbox: any thread adds, the loop takes everything that waits at once. Client operations and peer
/// frames are bounded by bytes, each on its own, so that neither can starve the other; what the node tells itself
/// (persisted, fetched) always finds room, since it is bounded by what the loop has asked for.
/// </summary>
internal sealed class LoopInbox(long clientBytesMax, long peerBytesMax)
{
    private readonly Lock _lock = new();
    private InboxItem[] _filling = new InboxItem[256];
    private InboxItem[] _taken = new InboxItem[256];
    private int _count;
    private long _clientBytes;
    private long _peerBytes;
    private bool _closed;

    /// <summary>Takes nothing further.</summary>
    public bool IsClosed
    {
        get
        {
            lock (_lock)
            {
                return _closed;
            }
        }
    }

    /// <summary>
    /// False when the item's class is over its bound or the inbox is closed: the caller keeps the item.
    /// </summary>
    public bool TryAdd(in InboxItem item)
    {
        lock (_lock)
        {
            if (_closed)
            {
                return false;
            }

            switch (item.Kind)
            {
                case InboxKind.Client:
                    if (_clientBytes >= clientBytesMax)
                    {
                        return false;
                    }

                    _clientBytes += item.Batch!.Buffer.Length;
                    break;
                case InboxKind.Peer:
                    if (_peerBytes >= peerBytesMax)
                    {
                        return false;
                    }

                    _peerBytes += item.Buffer!.Length;
                    break;
            }

            if (_count == _filling.Length)
            {
                Array.Resize(ref _filling, _count * 2);
            }

            _filling[_count++] = item;
            return true;
        }
    }

    /// <summary>Everything that waits, in order; valid until the next call. For the loop only.</summary>
    public Span<InboxItem> TakeAll()
    {
        int count;
        lock (_lock)
        {
            (_filling, _taken) = (_taken, _filling);
            count = _count;
            _count = 0;
            _clientBytes = 0;
            _peerBytes = 0;
        }

        return _taken.AsSpan(0, count);
    }

    /// <summary>Refuses everything from now on.</summary>
    public void Close()
    {
        lock (_lock)
        {
            _closed = true;
        }
    }
}
