namespace Kahuna.Tests.Storage;

/// <summary>
/// A file's content on <see cref="ModelDisk"/>: as read now, as on stable storage, and which writes are between the
/// two.
/// </summary>
internal sealed class ModelInode(UnsyncedFiles unsynced)
{
    private const int SectorBytes = 512;

    private readonly List<(int Offset, int Count)> _unsynced = [];
    private byte[] _stable = [];
    private int _stableLength;

    /// <summary>
    /// What is read and what is stable are one array, until the file is written again: most files are written and
    /// synced once.
    /// </summary>
    private bool _isOne;

    public byte[] Current { get; private set; } = [];

    public int Length { get; private set; }

    public int Unsynced => _unsynced.Sum(static write => write.Count);

    public bool HasUnsynced => _unsynced.Count > 0;

    public void Write(int offset, ReadOnlySpan<byte> bytes)
    {
        Part();
        if (Current.Length < offset + bytes.Length)
        {
            // Room for an ending that is short beside the rest, as most files have one.
            int needed = offset + bytes.Length;
            byte[] larger = GC.AllocateUninitializedArray<byte>(needed + (needed / 8) + 64);
            Current.AsSpan(0, Length).CopyTo(larger);
            Current = larger;
        }

        // Behind the end lies whatever was there before; a hole reads as zeros.
        if (offset > Length)
        {
            Current.AsSpan(Length, offset - Length).Clear();
        }

        bytes.CopyTo(Current.AsSpan(offset));
        Length = Math.Max(Length, offset + bytes.Length);
        unsynced.Count += _unsynced.Count == 0 ? 1 : 0;
        _unsynced.Add((offset, bytes.Length));
    }

    public void Sync()
    {
        if (IsFreshAndWhole())
        {
            _stable = Current;
            _stableLength = Length;
            _isOne = true;
            ForgetUnsynced();
            return;
        }

        foreach ((int offset, int count) in _unsynced)
        {
            Settle(offset, count);
        }

        ForgetUnsynced();
        _stableLength = Length;
    }

    public void SyncAll()
    {
        Settle(0, Length);
        _stableLength = Length;
        ForgetUnsynced();
    }

    /// <summary>A failed sync: the waiting writes are neither stable nor pending.</summary>
    public void FailSync() => ForgetUnsynced();

    public void Cut(int length)
    {
        Part();
        Current.AsSpan(Math.Min(length, Length)).Clear();
        Length = length;
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

        ForgetUnsynced();
        Length = _stableLength;
        Part();
        Current = new byte[_stableLength];
        _stable.AsSpan(0, Math.Min(_stable.Length, _stableLength)).CopyTo(Current);
    }

    public ModelInode Copy(UnsyncedFiles unsyncedThere)
    {
        ModelInode copy = new(unsyncedThere) { Current = [.. Current], Length = Length };
        copy.SyncAll();
        return copy;
    }

    /// <summary>Nothing of the file is stable, and all of it was written from its begin to its end.</summary>
    private bool IsFreshAndWhole()
    {
        int end = 0;
        foreach ((int offset, int count) in _unsynced)
        {
            if (offset != end)
            {
                return false;
            }

            end += count;
        }

        return _stable.Length == 0 && _stableLength == 0 && end == Length && Length > 0;
    }

    private void ForgetUnsynced()
    {
        unsynced.Count -= _unsynced.Count == 0 ? 0 : 1;
        _unsynced.Clear();
    }

    private void Part()
    {
        if (_isOne)
        {
            _stable = [.. Current];
            _stable.AsSpan(_stableLength).Clear();
            _isOne = false;
        }
    }

    private void Settle(int offset, int count)
    {
        if (_isOne)
        {
            return;
        }

        if (_stable.Length < offset + count)
        {
            Array.Resize(ref _stable, Math.Max(offset + count, Current.Length));
        }

        Current.AsSpan(offset, count).CopyTo(_stable.AsSpan(offset));
    }
}
