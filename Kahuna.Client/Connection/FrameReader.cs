using System.Buffers.Binary;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>
/// Splits the bytes of a stream into frames. Owned by the reader of one <see cref="NodeStream"/> and used by it alone.
/// A frame's payload is valid until the next call of <see cref="Space"/>.
/// </summary>
internal sealed class FrameReader : IDisposable
{
    private const int OrdinaryBytes = 128 * 1024;

    private byte[] _buffer = BufferArrays.Rent(OrdinaryBytes);
    private int _start;
    private int _end;

    /// <summary>The memory for the next bytes, with room for the rest of a frame that has begun.</summary>
    public Memory<byte> Space()
    {
        int held = _end - _start;
        int wanted = Math.Max(MissingBytes(), 1);
        if (_start > 0 && (held == 0 || _buffer.Length - _end < Math.Max(wanted, OrdinaryBytes / 2)))
        {
            _buffer.AsSpan(_start, held).CopyTo(_buffer);
            _start = 0;
            _end = held;
        }

        if (_buffer.Length - _end < wanted)
        {
            Replace(Math.Max(held + wanted, OrdinaryBytes));
        }
        else if (held == 0 && _buffer.Length > 8 * OrdinaryBytes)
        {
            Replace(OrdinaryBytes);
        }

        return _buffer.AsMemory(_end);
    }

    /// <summary>Marks bytes of the space as written.</summary>
    public void Advance(int count) => _end += count;

    /// <summary>Takes the next complete frame.</summary>
    /// <exception cref="InvalidDataException">The bytes are not a frame of this protocol.</exception>
    public bool TryTake(out ReadOnlySpan<byte> payload)
    {
        payload = default;
        if (_end - _start < Frame.GrpcPrefixBytes || MissingBytes() > 0)
        {
            return false;
        }

        int length = BodyBytes();
        if (!Frame.TryGetPayload(_buffer.AsSpan(_start + Frame.GrpcPrefixBytes, length), out payload))
        {
            throw new InvalidDataException("a message is not a frame");
        }

        _start += Frame.GrpcPrefixBytes + length;
        return true;
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        byte[] buffer = _buffer;
        _buffer = [];
        _start = 0;
        _end = 0;
        if (buffer.Length > 0)
        {
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>How many bytes of the first frame are missing.</summary>
    private int MissingBytes()
    {
        int held = _end - _start;
        return held < Frame.GrpcPrefixBytes ? Frame.GrpcPrefixBytes - held : Frame.GrpcPrefixBytes + BodyBytes() - held;
    }

    private int BodyBytes()
    {
        ReadOnlySpan<byte> prefix = _buffer.AsSpan(_start, Frame.GrpcPrefixBytes);
        uint length = BinaryPrimitives.ReadUInt32BigEndian(prefix[1..]);
        if (prefix[0] != 0)
        {
            throw new InvalidDataException("a message is compressed, which frames must not be");
        }

        return length <= Limits.FrameBytesMax
            ? (int)length
            : throw new InvalidDataException(
                FormattableString.Invariant($"a frame is {length:N0} bytes; the limit is {Limits.FrameBytesMax:N0}"));
    }

    private void Replace(int capacity)
    {
        byte[] other = BufferArrays.Rent(capacity);
        int held = _end - _start;
        _buffer.AsSpan(_start, held).CopyTo(other);
        BufferArrays.Return(_buffer);
        _buffer = other;
        _start = 0;
        _end = held;
    }
}
