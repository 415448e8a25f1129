using System.Buffers;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>A run of bytes in pieces of a given size, as a connection may deliver them. Made by one test.</summary>
internal sealed class Pieces : ReadOnlySequenceSegment<byte>
{
    private Pieces(ReadOnlyMemory<byte> memory, long runningIndex)
    {
        Memory = memory;
        RunningIndex = runningIndex;
    }

    public static ReadOnlySequence<byte> Of(byte[] bytes, int size)
    {
        Pieces first = new(bytes.AsMemory(0, Math.Min(size, bytes.Length)), 0);
        Pieces last = first;
        for (int at = size; at < bytes.Length; at += size)
        {
            Pieces next = new(bytes.AsMemory(at, Math.Min(size, bytes.Length - at)), at);
            last.Next = next;
            last = next;
        }

        return new ReadOnlySequence<byte>(first, 0, last, last.Memory.Length);
    }
}
