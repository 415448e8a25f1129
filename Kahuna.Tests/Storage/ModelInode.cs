namespace Kahuna.Tests.Storage;

/// <summary>A file's content on <see cref="ModelDisk"/>: as read now, as on stable storage, and which writes are between the two.</summary>
internal sealed class ModelInode
{
    private const int SectorBytes = 512;

    private readonly List<(int Offset, int Count)> _unsynced = [];
    private byte[] _stable = [];
    private int _stableLength;

    public byte[] Current { get; private set; } = [];

    public int Length { get; private set; }

    public int Unsynced => _unsynced.Sum(static write => write.Count);

    public bool HasUnsynced => _unsynced.Count > 0;

    public void Write(int offset, ReadOnlySpan<byte> bytes)
    {
        if (Current.Length < offset + bytes.Length)
        {
            byte[] larger = new byte[Math.Max(offset + bytes.Length, Current.Length * 2)];
            Current.AsSpan(0, Length).CopyTo(larger);
            Current = larger;
        }

        bytes.CopyTo(Current.AsSpan(offset));
        Length = Math.Max(Length, offset + bytes.Length);
        _unsynced.Add((offset, bytes.Length));
    }

    public void Sync()
    {
        foreach ((int offset, int count) in _unsynced)
        {
            Settle(offset, count);
        }

        _unsynced.Clear();
        _stableLength = Length;
    }

    public void SyncAll()
    {
        Settle(0, Length);
        _stableLength = Length;
        _unsynced.Clear();
    }

    /// <summary>A failed sync: what waited is neither stable nor waits any longer.</summary>
    public void FailSync() => _unsynced.Clear();

    public void Cut(int length)
    {
        Length = length;
        Current.AsSpan(length).Clear();
        SyncAll();
        _stable.AsSpan(length).Clear();
    }

    public void Crash(Random? random)
    {
        if (random is not null)
        {
            // All, some, none, or all but one of the sectors of each write made it, in any order.
            foreach ((int offset, int count) in _unsynced)
            {
                int made = random.Next(4);
                int lost = made == 3 ? offset + random.Next(count) : -1;
                for (int at = offset; at < offset + count;)
                {
                    int next = Math.Min(offset + count, (at / SectorBytes * SectorBytes) + SectorBytes);
                    if (made == 3 ? lost < at || lost >= next : random.NextDouble() < made / 2.0)
                    {
                        Settle(at, next - at);
                        _stableLength = Math.Max(_stableLength, next);
                    }

                    at = next;
                }
            }
        }

        _unsynced.Clear();
        Length = _stableLength;
        Current = new byte[_stableLength];
        _stable.AsSpan(0, Math.Min(_stable.Length, _stableLength)).CopyTo(Current);
    }

    public ModelInode Copy()
    {
        ModelInode copy = new() { Current = [.. Current], Length = Length };
        copy.SyncAll();
        return copy;
    }

    private void Settle(int offset, int count)
    {
        if (_stable.Length < offset + count)
        {
            Array.Resize(ref _stable, Math.Max(offset + count, Current.Length));
        }

        Current.AsSpan(offset, count).CopyTo(_stable.AsSpan(offset));
    }
}
