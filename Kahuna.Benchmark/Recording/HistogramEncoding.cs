using System.Buffers.Binary;
using System.IO.Compression;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// The V2 encoding of HdrHistogram, plain and compressed, readable by every implementation of it: a 40-byte header, then the counters as
/// ZigZag LEB128 numbers in which a negative number stands for a run of zeros. Static, any thread.
/// </summary>
internal static class HistogramEncoding
{
    /// <summary>The low half byte of the two cookies names the width of a counter word, which V2 fixes at 0x10.</summary>
    private const int PayloadCookie = 0x1c849303 | 0x10;
    private const int CompressedCookie = 0x1c849304 | 0x10;
    private const int HeaderBytes = 40;

    /// <summary>A 64-bit number takes at most 9 bytes: eight with seven bits each and one with eight.</summary>
    private const int NumberBytesMax = 9;

    /// <summary>Compressed and in base64: what a histogram log holds and what readers take as text.</summary>
    public static string ToBase64(HdrHistogram histogram) => Convert.ToBase64String(Compress(histogram));

    public static HdrHistogram FromBase64(string text) => Decompress(Convert.FromBase64String(text));

    public static byte[] Compress(HdrHistogram histogram)
    {
        using MemoryStream body = new();
        body.Write(stackalloc byte[8]);
        using (ZLibStream zlib = new(body, CompressionLevel.Optimal, leaveOpen: true))
        {
            zlib.Write(Encode(histogram));
        }

        byte[] bytes = body.ToArray();
        BinaryPrimitives.WriteInt32BigEndian(bytes, CompressedCookie);
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(4), bytes.Length - 8);
        return bytes;
    }

    public static HdrHistogram Decompress(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length < 8 || BinaryPrimitives.ReadInt32BigEndian(bytes) != CompressedCookie)
        {
            throw new InvalidDataException("Not a compressed V2 histogram.");
        }

        int length = BinaryPrimitives.ReadInt32BigEndian(bytes[4..]);
        if (length < 0 || length > bytes.Length - 8)
        {
            throw new InvalidDataException("The compressed histogram is cut short.");
        }

        using ZLibStream zlib = new(new MemoryStream(bytes.Slice(8, length).ToArray()), CompressionMode.Decompress);
        using MemoryStream plain = new();
        zlib.CopyTo(plain);
        return Decode(plain.GetBuffer().AsSpan(0, (int)plain.Length));
    }

    public static byte[] Encode(HdrHistogram histogram)
    {
        int counters = histogram.CounterCount;
        byte[] bytes = new byte[HeaderBytes + ((counters + 1) * NumberBytesMax)];
        int at = HeaderBytes;
        for (int i = 0; i < counters;)
        {
            long count = histogram.CountAt(i++);
            if (count == 0)
            {
                long zeros = 1;
                while (i < counters && histogram.CountAt(i) == 0)
                {
                    zeros++;
                    i++;
                }

                count = -zeros;
            }

            at += WriteNumber(bytes.AsSpan(at), count);
        }

        BinaryPrimitives.WriteInt32BigEndian(bytes, PayloadCookie);
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(4), at - HeaderBytes);
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(8), 0);
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(12), histogram.Layout.SignificantDigits);
        BinaryPrimitives.WriteInt64BigEndian(bytes.AsSpan(16), histogram.Layout.LowestDiscernible);
        BinaryPrimitives.WriteInt64BigEndian(bytes.AsSpan(24), histogram.HighestTrackable);
        BinaryPrimitives.WriteDoubleBigEndian(bytes.AsSpan(32), 1.0);
        return bytes[..at];
    }

    public static HdrHistogram Decode(ReadOnlySpan<byte> bytes)
    {
        if (bytes.Length < HeaderBytes || BinaryPrimitives.ReadInt32BigEndian(bytes) != PayloadCookie)
        {
            throw new InvalidDataException("Not a V2 histogram.");
        }

        int length = BinaryPrimitives.ReadInt32BigEndian(bytes[4..]);
        if (length == bytes.Length)
        {
            // The C implementation counts the header in.
            length -= HeaderBytes;
        }

        int digits = BinaryPrimitives.ReadInt32BigEndian(bytes[12..]);
        long lowest = BinaryPrimitives.ReadInt64BigEndian(bytes[16..]);
        long highest = BinaryPrimitives.ReadInt64BigEndian(bytes[24..]);
        if (length < 0 || length > bytes.Length - HeaderBytes || digits is < 0 or > 5 || lowest < 1 || highest < 2 * lowest)
        {
            throw new InvalidDataException("The histogram's header is damaged.");
        }

        HdrHistogram histogram = new(new BucketLayout(lowest, digits), highest);
        int counters = histogram.Layout.CountersFor(highest);
        ReadOnlySpan<byte> body = bytes.Slice(HeaderBytes, length);
        long index = 0;
        while (!body.IsEmpty)
        {
            body = body[ReadNumber(body, out long count)..];
            long step = count < 0 ? -count : 1;
            if (step < 0 || index + step > counters)
            {
                throw new InvalidDataException("The histogram has more counters than its range allows.");
            }

            if (count > 0)
            {
                histogram.AddCountAt((int)index, count);
            }

            index += step;
        }

        return histogram;
    }

    private static int WriteNumber(Span<byte> target, long number)
    {
        ulong rest = (ulong)((number << 1) ^ (number >> 63));
        for (int i = 0; i < NumberBytesMax - 1; i++)
        {
            if (rest < 0x80)
            {
                target[i] = (byte)rest;
                return i + 1;
            }

            target[i] = (byte)(rest | 0x80);
            rest >>= 7;
        }

        target[NumberBytesMax - 1] = (byte)rest;
        return NumberBytesMax;
    }

    private static int ReadNumber(ReadOnlySpan<byte> source, out long number)
    {
        ulong rest = 0;
        for (int i = 0; i < source.Length && i < NumberBytesMax; i++)
        {
            bool isLast = i == NumberBytesMax - 1;
            rest |= (ulong)(isLast ? source[i] : source[i] & 0x7f) << (7 * i);
            if (isLast || source[i] < 0x80)
            {
                number = (long)(rest >> 1) ^ -(long)(rest & 1);
                return i + 1;
            }
        }

        throw new InvalidDataException("The histogram's counters are cut short.");
    }
}
