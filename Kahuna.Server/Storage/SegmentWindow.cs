using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Reads a segment's file through one large sliding buffer, which grows to the largest piece requested. Owned by one
/// reader at a time.
/// </summary>
internal sealed class SegmentWindow(int bytesMin)
{
    private byte[] _buffer = [];
    private IDiskFile? _file;
    private long _start;
    private int _filled;
    private long _end;

    /// <summary>Switches to another file, which is read up to <paramref name="end"/>.</summary>
    public void Open(IDiskFile file, long end)
    {
        _file = file;
        _end = end;
        _start = 0;
        _filled = 0;
    }

    /// <summary>
    /// The bytes at an offset; fewer than requested at the end of the file. Valid until the next call.
    /// </summary>
    public ReadOnlyMemory<byte> Get(long offset, int count)
    {
        InvariantException.Require(offset >= 0 && count >= 0, "a piece lies in the file");
        count = (int)Math.Clamp(_end - offset, 0, count);
        if (count == 0)
        {
            return default;
        }

        if (offset < _start || offset + count > _start + _filled)
        {
            Fill(offset, count);
        }

        InvariantException.Require(offset >= _start, "the window is moved to the piece");
        int available = (int)Math.Clamp(_start + _filled - offset, 0, count);
        return _buffer.AsMemory((int)(offset - _start), available);
    }

    private void Fill(long offset, int count)
    {
        int wanted = (int)Math.Min(Math.Max(count, bytesMin), _end - offset);
        if (_buffer.Length < wanted)
        {
            _buffer = GC.AllocateUninitializedArray<byte>(wanted);
        }

        _start = offset;
        _filled = 0;
        _filled = _file!.Read(offset, _buffer.AsSpan(0, wanted));
    }
}
