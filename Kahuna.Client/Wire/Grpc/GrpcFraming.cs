using System.Buffers;
using System.Buffers.Binary;
using Google.Protobuf;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>The length prefix of messages, read from and written to buffers. Pure; any thread.</summary>
internal static class GrpcFraming
{
    /// <summary>
    /// Cuts the next whole message off the front of <paramref name="buffer"/>. False when it is not complete yet.
    /// </summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: the message is over the limit (told by its prefix alone); INTERNAL: the prefix is none.</exception>
    public static bool TryRead(ref ReadOnlySequence<byte> buffer, int maxBytes, out bool compressed, out ReadOnlySequence<byte> message)
    {
        compressed = false;
        message = default;
        if (buffer.Length < GrpcProtocol.PrefixBytes)
        {
            return false;
        }

        Span<byte> copy = stackalloc byte[GrpcProtocol.PrefixBytes];
        scoped ReadOnlySpan<byte> prefix = buffer.FirstSpan;
        if (prefix.Length < GrpcProtocol.PrefixBytes)
        {
            buffer.Slice(0, GrpcProtocol.PrefixBytes).CopyTo(copy);
            prefix = copy;
        }

        int length = ReadPrefix(prefix, maxBytes, out compressed);
        if (buffer.Length - GrpcProtocol.PrefixBytes < length)
        {
            return false;
        }

        message = buffer.Slice(GrpcProtocol.PrefixBytes, length);
        buffer = buffer.Slice(message.End);
        return true;
    }

    /// <summary>Reads the flag and the length at the front of <paramref name="prefix"/>.</summary>
    /// <exception cref="GrpcException">As <see cref="TryRead"/>.</exception>
    public static int ReadPrefix(ReadOnlySpan<byte> prefix, int maxBytes, out bool compressed)
    {
        if (prefix[0] > 1)
        {
            throw new GrpcException(GrpcStatusCode.Internal, $"A message begins with the flag {prefix[0]}; only 0 and 1 are defined.");
        }

        compressed = prefix[0] == 1;
        uint length = BinaryPrimitives.ReadUInt32BigEndian(prefix[1..]);
        return length > (uint)maxBytes
            ? throw new GrpcException(GrpcStatusCode.ResourceExhausted, $"A message of {length} bytes is over the limit of {maxBytes} bytes.")
            : (int)length;
    }

    /// <summary>Writes the flag and the length.</summary>
    public static void WritePrefix(Span<byte> prefix, bool compressed, int length)
    {
        prefix[0] = compressed ? (byte)1 : (byte)0;
        BinaryPrimitives.WriteUInt32BigEndian(prefix[1..], (uint)length);
    }

    /// <summary>Writes a message with its prefix, compressed if <paramref name="gzip"/>.</summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: the message is over the limit; nothing was written then.</exception>
    public static void Write(IBufferWriter<byte> writer, IMessage message, bool gzip, int maxBytes)
    {
        int size = CheckedSize(message, maxBytes);
        if (gzip)
        {
            ArrayBufferWriter<byte> plain = new(Math.Max(size, 1));
            message.WriteTo(plain);
            using MemoryStream packed = GrpcGzip.Compress(plain.WrittenSpan);
            WritePrefix(writer.GetSpan(GrpcProtocol.PrefixBytes), compressed: true, (int)packed.Length);
            writer.Advance(GrpcProtocol.PrefixBytes);
            writer.Write(packed.GetBuffer().AsSpan(0, (int)packed.Length));
            return;
        }

        WritePrefix(writer.GetSpan(GrpcProtocol.PrefixBytes), compressed: false, size);
        writer.Advance(GrpcProtocol.PrefixBytes);
        message.WriteTo(writer);
    }

    /// <summary>A message with its prefix in an array of its own.</summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: the message is over the limit.</exception>
    public static ReadOnlyMemory<byte> ToArray(IMessage message, bool gzip, int maxBytes)
    {
        if (gzip)
        {
            ArrayBufferWriter<byte> writer = new();
            Write(writer, message, gzip, maxBytes);
            return writer.WrittenMemory;
        }

        int size = CheckedSize(message, maxBytes);
        byte[] array = GC.AllocateUninitializedArray<byte>(GrpcProtocol.PrefixBytes + size);
        WritePrefix(array, compressed: false, size);
        message.WriteTo(array.AsSpan(GrpcProtocol.PrefixBytes));
        return array;
    }

    private static int CheckedSize(IMessage message, int maxBytes)
    {
        int size = message.CalculateSize();
        return size > maxBytes
            ? throw new GrpcException(GrpcStatusCode.ResourceExhausted, $"A message of {size} bytes is over the limit of {maxBytes} bytes for sending.")
            : size;
    }
}
