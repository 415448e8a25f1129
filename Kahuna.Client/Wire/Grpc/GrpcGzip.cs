using System.Buffers;
using System.IO.Compression;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>The one compression that gRPC implementations share. Pure; any thread.</summary>
internal static class GrpcGzip
{
    public static MemoryStream Compress(ReadOnlySpan<byte> plain)
    {
        MemoryStream packed = new();
        using (GZipStream gzip = new(packed, CompressionLevel.Fastest, leaveOpen: true))
        {
            gzip.Write(plain);
        }

        return packed;
    }

    /// <summary>Unpacks a message, never more than <paramref name="maxBytes"/> of it: a small message can stand for a huge one.</summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: it is over the limit; INTERNAL: it is no gzip.</exception>
    public static ReadOnlyMemory<byte> Decompress(ReadOnlySequence<byte> packed, int maxBytes)
    {
        using MemoryStream source = new(packed.ToArray(), writable: false);
        using GZipStream gzip = new(source, CompressionMode.Decompress);
        ArrayBufferWriter<byte> plain = new(Math.Clamp((int)packed.Length * 3, 256, 1 << 20));
        try
        {
            int read;
            while ((read = gzip.Read(plain.GetSpan(4096))) > 0)
            {
                plain.Advance(read);
                if (plain.WrittenCount > maxBytes)
                {
                    throw new GrpcException(GrpcStatusCode.ResourceExhausted, $"A compressed message unpacks to more than the limit of {maxBytes} bytes.");
                }
            }
        }
        catch (InvalidDataException e)
        {
            throw new GrpcException(new GrpcStatus(GrpcStatusCode.Internal, "A message is marked as gzip and is none."), inner: e);
        }

        return plain.WrittenMemory;
    }
}
