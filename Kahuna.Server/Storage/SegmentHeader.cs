using System.Buffers.Binary;

namespace Kahuna.Server.Storage;

/// <summary>
/// The first page of a segment file. Written and synced before the file gets its final name.
/// <code>
/// 8 bytes magic, u32 format, u32 flags, u64 log id, u64 segment number, u64 capacity, u32 zero,
/// u32 checksum of the 44 bytes before
/// </code>
/// </summary>
/// <param name="LogId">Random identity of the log, the same in all its segments.</param>
/// <param name="Segment">The segment's number, ascending from 1; also its file name.</param>
/// <param name="Capacity">Bytes that the file was filled to. It is never shorter.</param>
/// <param name="Recycled">The file held an older segment before: remnants instead of zeros follow the last
/// batch.</param>
internal readonly record struct SegmentHeader(ulong LogId, ulong Segment, long Capacity, bool Recycled)
{
    /// <summary>Reserved for the header: one page, so that writing batches never touches it.</summary>
    public const int Bytes = 4096;

    public const uint Format = 2;

    private const int UsedBytes = 48;
    private const int ChecksumOffset = 44;

    private static ReadOnlySpan<byte> Magic => "KahunLog"u8;

    /// <summary>
    /// Value that the checksums of the segment's records are combined with. Two segments of one log never share it.
    /// </summary>
    public uint Seal
    {
        get
        {
            // For inputs that differ in 32 bits only, CRC-32C never collides: segments of one log have different seals
            // up to number 2^32.
            Span<byte> seed = stackalloc byte[16];
            BinaryPrimitives.WriteUInt64LittleEndian(seed, LogId);
            BinaryPrimitives.WriteUInt64LittleEndian(seed[8..], Segment);
            return Crc32C.Of(seed);
        }
    }

    public void Write(Span<byte> target)
    {
        target[..Bytes].Clear();
        Magic.CopyTo(target);
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], Format);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], Recycled ? 1u : 0u);
        BinaryPrimitives.WriteUInt64LittleEndian(target[16..], LogId);
        BinaryPrimitives.WriteUInt64LittleEndian(target[24..], Segment);
        BinaryPrimitives.WriteUInt64LittleEndian(target[32..], (ulong)Capacity);
        BinaryPrimitives.WriteUInt32LittleEndian(target[ChecksumOffset..], Crc32C.Of(target[..ChecksumOffset]));
    }

    /// <summary>Reads a header. Null, with the reason, if it is none.</summary>
    /// <exception cref="DataDirectoryRefusedException">This version does not understand its format.</exception>
    public static SegmentHeader? Read(ReadOnlySpan<byte> source, out string? wrong)
    {
        if (source.Length < UsedBytes || !source.StartsWith(Magic))
        {
            wrong = "it is no log segment";
            return null;
        }

        if (BinaryPrimitives.ReadUInt32LittleEndian(source[ChecksumOffset..]) != Crc32C.Of(source[..ChecksumOffset]))
        {
            wrong = "the checksum of its header is wrong";
            return null;
        }

        uint format = BinaryPrimitives.ReadUInt32LittleEndian(source[8..]);
        if (format != Format)
        {
            throw new DataDirectoryRefusedException(
                $"The log has format {format}, and this version understands format {Format} only. Use the version "
                    + "that wrote it, or choose another directory; nothing was changed.");
        }

        wrong = null;
        return new SegmentHeader(
            BinaryPrimitives.ReadUInt64LittleEndian(source[16..]),
            BinaryPrimitives.ReadUInt64LittleEndian(source[24..]),
            BinaryPrimitives.ReadInt64LittleEndian(source[32..]),
            (BinaryPrimitives.ReadUInt32LittleEndian(source[12..]) & 1) != 0);
    }
}
