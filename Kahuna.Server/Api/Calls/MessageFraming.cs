using System.Buffers;
using System.Buffers.Binary;
using System.IO.Compression;
using Grpc.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The framing of messages in the body of a gRPC request: a flag (1: compressed), a 32-bit big-endian length, the
/// message. Pure; any thread.
/// </summary>
internal static class MessageFraming
{
    /// <summary>Bytes of flag and length.</summary>
    public const int PrefixBytes = 5;

    /// <summary>
    /// Takes the next whole message off the front of <paramref name="buffer"/>. False if it is incomplete.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the message exceeds the limit, according to its prefix.
    /// INTERNAL: the prefix is malformed.</exception>
    public static bool TryRead(
        ref ReadOnlySequence<byte> buffer, int maxBytes, out bool compressed, out ReadOnlySequence<byte> message)
    {
        compressed = false;
        message = default;
        if (buffer.Length < PrefixBytes)
        {
            return false;
        }

        Span<byte> copy = stackalloc byte[PrefixBytes];
        scoped ReadOnlySpan<byte> prefix = buffer.FirstSpan;
        if (prefix.Length < PrefixBytes)
        {
            buffer.Slice(0, PrefixBytes).CopyTo(copy);
            prefix = copy;
        }

        if (prefix[0] > 1)
        {
            throw new RpcException(new Status(
                StatusCode.Internal, $"A message begins with the flag {prefix[0]}; only 0 and 1 are defined."));
        }

        compressed = prefix[0] == 1;
        uint length = BinaryPrimitives.ReadUInt32BigEndian(prefix[1..]);
        if (length > (uint)maxBytes)
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted, $"A message of {length} bytes is over the limit of {maxBytes} bytes."));
        }

        if (buffer.Length - PrefixBytes < length)
        {
            return false;
        }

        message = buffer.Slice(PrefixBytes, length);
        buffer = buffer.Slice(message.End);
        return true;
    }

    /// <summary>
    /// Decompresses a gzip message and adds a prefix. Stops above <paramref name="maxBytes"/>, because a small message
    /// can expand to a huge one.
    /// </summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: it exceeds the limit. INTERNAL: it is not gzip.</exception>
    public static ReadOnlySequence<byte> Unpack(ReadOnlySequence<byte> packed, int maxBytes)
    {
        using MemoryStream source = new(packed.ToArray(), writable: false);
        using GZipStream gzip = new(source, CompressionMode.Decompress);
        using MemoryStream plain = new();
        plain.SetLength(PrefixBytes);
        plain.Position = PrefixBytes;
        byte[] piece = ArrayPool<byte>.Shared.Rent(16 << 10);
        try
        {
            int read;
            while ((read = gzip.Read(piece)) > 0)
            {
                plain.Write(piece, 0, read);
                if (plain.Length - PrefixBytes > maxBytes)
                {
                    throw new RpcException(new Status(
                        StatusCode.ResourceExhausted,
                        $"A compressed message unpacks to more than the limit of {maxBytes} bytes."));
                }
            }
        }
        catch (InvalidDataException)
        {
            throw new RpcException(new Status(StatusCode.Internal, "A message is marked as gzip but is not."));
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(piece);
        }

        BinaryPrimitives.WriteUInt32BigEndian(plain.GetBuffer().AsSpan(1), (uint)(plain.Length - PrefixBytes));
        return new ReadOnlySequence<byte>(plain.GetBuffer(), 0, (int)plain.Length);
    }
}
