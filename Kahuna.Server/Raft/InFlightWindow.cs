using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>The appends sent to one follower and not yet acknowledged, bounded by number and by bytes. Owned by one <see cref="Progress"/>; not thread-safe.</summary>
internal sealed class InFlightWindow(int appendsMax, long bytesMax)
{
    private Sent[] _ring = new Sent[Math.Min(16, appendsMax)];
    private int _head;
    private int _count;
    private long _bytes;

    /// <summary>No further append may leave. A single append may exceed the bytes: else a large entry would never leave.</summary>
    public bool IsFull => _count >= appendsMax || _bytes >= bytesMax;

    public void Add(LogIndex last, long bytes)
    {
        if (_count == _ring.Length)
        {
            Grow();
        }

        _ring[(_head + _count) % _ring.Length] = new Sent(last, bytes);
        _count++;
        _bytes += bytes;
    }

    /// <summary>Everything up to <paramref name="match"/> has arrived.</summary>
    public void FreeThrough(LogIndex match)
    {
        while (_count > 0 && _ring[_head].Last <= match)
        {
            _bytes -= _ring[_head].Bytes;
            _head = (_head + 1) % _ring.Length;
            _count--;
        }
    }

    public void Clear()
    {
        _head = 0;
        _count = 0;
        _bytes = 0;
    }

    private void Grow()
    {
        var larger = new Sent[Math.Min(_ring.Length * 2, appendsMax)];
        for (int i = 0; i < _count; i++)
        {
            larger[i] = _ring[(_head + i) % _ring.Length];
        }

        _ring = larger;
        _head = 0;
    }

    private readonly record struct Sent(LogIndex Last, long Bytes);
}
