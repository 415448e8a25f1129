using System.Buffers.Binary;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>The frame that is being filled with requests until the writer takes it. Owned by a <see cref="NodeStream"/> and guarded by its lock.</summary>
internal sealed class RequestFrame
{
    private const int FirstRequest = Frame.PrefixBytes + Frame.HeaderBytes;

    private ByteBuffer? _bytes;

    /// <summary>Requests in the frame.</summary>
    public int Count { get; private set; }

    /// <summary>The frame is as large as frames get; what comes next waits for its successor.</summary>
    public bool IsFull => _bytes is not null && _bytes.Length >= Limits.FrameBytesTarget;

    /// <summary>Appends a request.</summary>
    public void Append(uint number, uint waitMs, scoped in Command command)
    {
        if (_bytes is null)
        {
            _bytes = ByteBuffer.Rent();
            Frame.Begin(_bytes, FrameKind.Requests);
        }

        Frame.AppendRequest(_bytes, number, waitMs, in command);
        Count++;
    }

    /// <summary>Hands over the finished frame and begins the next one. There must be a request in it.</summary>
    public ByteBuffer Take()
    {
        ByteBuffer taken = _bytes!;
        Frame.End(taken, Count);
        _bytes = null;
        Count = 0;
        return taken;
    }

    /// <summary>Takes back the requests whose operations have ended, and frees their places: nothing of them reaches the wire.</summary>
    public void RemoveEnded(SlotTable slots)
    {
        if (_bytes is null)
        {
            return;
        }

        Span<byte> all = _bytes.Array.AsSpan(0, _bytes.Length);
        int to = FirstRequest;
        int kept = 0;
        for (int at = FirstRequest; at < all.Length;)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(all[at..]);
            int length = Frame.RequestHeaderBytes + (int)BinaryPrimitives.ReadUInt32LittleEndian(all[(at + 8)..]);
            if (slots.TryFind(number, out OperationRef reference, out _) && reference.IsPending)
            {
                all.Slice(at, length).CopyTo(all[to..]);
                to += length;
                kept++;
            }
            else
            {
                slots.TryRelease(number, out _);
            }

            at += length;
        }

        _bytes.Length = to;
        Count = kept;
    }

    /// <summary>Drops what was not taken.</summary>
    public void Clear()
    {
        _bytes?.Return();
        _bytes = null;
        Count = 0;
    }
}
