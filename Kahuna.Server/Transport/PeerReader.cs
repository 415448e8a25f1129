using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.Transport;

/// <summary>Where complete frames go. The payload is valid during the call only. False ends the reading.</summary>
internal delegate bool FrameSink(ReadOnlySpan<byte> payload);

/// <summary>
/// Cuts the bytes of a link into frames and delivers them in place, in the thread that reads. Used by that thread; <see cref="TakeActivity"/> from
/// another one.
/// </summary>
internal sealed class PeerReader(Stream stream)
{
    private const int ReceiveBytes = 128 * 1024;

    /// <summary>Room that a read should find: what TLS hands over at once.</summary>
    private const int ReadBytesMin = 16 * 1024;

    private volatile bool _heard;
    private volatile bool _delivering;

    /// <summary>Whether bytes came since the last call, or the receiver is still at work with one.</summary>
    public bool TakeActivity()
    {
        bool active = _heard || _delivering;
        _heard = false;
        return active;
    }

    /// <summary>Reads until the stream ends or the sink has enough.</summary>
    /// <exception cref="IOException">The stream broke, or the peer broke the rules.</exception>
    public void Run(FrameSink sink)
    {
        byte[] buffer = BufferArrays.Rent(ReceiveBytes);
        try
        {
            int start = 0;
            int end = 0;
            while (true)
            {
                int count = stream.Read(buffer, end, buffer.Length - end);
                if (count == 0)
                {
                    return;
                }

                _heard = true;
                end += count;
                if (!Deliver(sink, buffer.AsSpan(0, end), ref start, out int missing))
                {
                    return;
                }

                MakeRoom(ref buffer, ref start, ref end, missing);
            }
        }
        finally
        {
            BufferArrays.Return(buffer);
        }
    }

    /// <summary>Delivers every complete frame. <paramref name="missing"/>: bytes that the incomplete one needs as a whole.</summary>
    private bool Deliver(FrameSink sink, ReadOnlySpan<byte> received, ref int start, out int missing)
    {
        missing = 0;
        while (received.Length - start >= PeerProtocol.FramePrefixBytes)
        {
            uint length = BinaryPrimitives.ReadUInt32LittleEndian(received[start..]);
            if (length > PeerProtocol.FrameBytesMax)
            {
                throw new IOException($"it sent a frame of {length} bytes; {PeerProtocol.FrameBytesMax} are allowed");
            }

            int whole = PeerProtocol.FramePrefixBytes + (int)length;
            if (received.Length - start < whole)
            {
                missing = whole;
                return true;
            }

            if (length > 0)
            {
                _delivering = true;
                bool goOn = sink(received.Slice(start + PeerProtocol.FramePrefixBytes, (int)length));
                _delivering = false;
                if (!goOn)
                {
                    return false;
                }
            }

            start += whole;
        }

        return true;
    }

    private static void MakeRoom(ref byte[] buffer, ref int start, ref int end, int missing)
    {
        int rest = end - start;
        int wanted = Math.Max(missing, ReceiveBytes);
        if (wanted > buffer.Length || (buffer.Length > 2 * ReceiveBytes && wanted <= ReceiveBytes))
        {
            // Grows for one large frame, and goes back to the usual size after it.
            byte[] other = BufferArrays.Rent(wanted);
            buffer.AsSpan(start, rest).CopyTo(other);
            BufferArrays.Return(buffer);
            buffer = other;
        }
        else if (rest > 0 && (start + missing > buffer.Length || buffer.Length - end < ReadBytesMin))
        {
            buffer.AsSpan(start, rest).CopyTo(buffer);
        }
        else if (rest > 0)
        {
            return;
        }

        start = 0;
        end = rest;
    }
}
