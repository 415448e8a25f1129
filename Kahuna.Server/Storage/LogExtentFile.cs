using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>The known extent of the log, recorded outside of it (docs/log-format.md). Immutable.</summary>
/// <param name="LogId">Identity of the log.</param>
/// <param name="Segment">The newest segment whose file got its name; 0 before the first one.</param>
/// <param name="Batch">A batch that is on stable storage, with all batches before it; 0 if none is known.</param>
internal readonly record struct LogExtent(ulong LogId, ulong Segment, ulong Batch);

/// <summary>
/// The file <c>LOG</c> beside the log's directory: the identity of the log and how far it reached. A log that ends
/// earlier has lost data that was on stable storage. Two slots of one page each are written in turn and in place, so
/// that a write changes no metadata. Not thread-safe; the <see cref="SegmentPreparer"/> guards it while the log runs.
/// <code>
/// slot: 8 bytes magic, u32 format, u32 zero, u64 sequence, u64 log id, u64 segment, u64 batch, u32 zero,
///       u32 checksum of the 52 bytes before
/// </code>
/// The intact slot with the greater sequence is valid.
/// </summary>
internal sealed class LogExtentFile : IDisposable
{
    public const string FileName = "LOG";

    private const uint Format = 1;
    private const int SlotBytes = 4096;
    private const int UsedBytes = 56;
    private const int ChecksumOffset = 52;

    private readonly IDiskFile _file;
    private readonly byte[] _slot = new byte[UsedBytes];
    private ulong _sequence;

    private LogExtentFile(IDiskFile file) => _file = file;

    /// <summary>The last recorded extent.</summary>
    public LogExtent Latest { get; private set; }

    private static ReadOnlySpan<byte> Magic => "KahunExt"u8;

    /// <summary>Opens the record of the data directory's log, or creates one if the log was never created.</summary>
    /// <param name="disk">The disk.</param>
    /// <param name="dataDirectory">The node's data directory.</param>
    /// <param name="options">Which log belongs to the directory, and whether it was created before.</param>
    /// <param name="hasSegments">Whether the log has segment files.</param>
    /// <exception cref="LogDamagedException">The record is missing, damaged, or of another log.</exception>
    /// <exception cref="DiskException">The disk refused an operation.</exception>
    public static LogExtentFile Open(IDisk disk, string dataDirectory, SegmentedLogOptions options, bool hasSegments)
    {
        string path = Path.Combine(dataDirectory, FileName);
        if (!disk.List(dataDirectory).Contains(FileName))
        {
            return hasSegments || options.LogMade
                ? throw new LogDamagedException(
                    path,
                    0,
                    hasSegments
                        ? "the file is missing, and there is a log"
                        : "the file is missing, and so is the log, which was created before (is a disk not mounted?)")
                : Create(disk, dataDirectory, path, options.LogId);
        }

        LogExtentFile opened = new(disk.Open(path, DiskFileMode.Existing));
        try
        {
            opened.Read();

            // The previous process may have been killed between the write of this slot and its sync. Sync it, because
            // later writes rely on it after a power failure.
            opened._file.SyncData();
            return opened.Latest.LogId == options.LogId
                ? opened
                : throw new LogDamagedException(
                    path,
                    0,
                    $"it is of log {opened.Latest.LogId:x16}, and this data directory has log {options.LogId:x16}");
        }
        catch
        {
            opened.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Writes an extent to stable storage. After an error the previous one stays valid, and the next call tries again.
    /// </summary>
    /// <exception cref="DiskException">The disk refused the write or the sync.</exception>
    public void Write(in LogExtent extent)
    {
        InvariantException.Require(extent.Batch >= Latest.Batch, "the recorded extent never shrinks");
        ulong sequence = _sequence + 1;
        Magic.CopyTo(_slot);
        BinaryPrimitives.WriteUInt32LittleEndian(_slot.AsSpan(8), Format);
        BinaryPrimitives.WriteUInt64LittleEndian(_slot.AsSpan(16), sequence);
        BinaryPrimitives.WriteUInt64LittleEndian(_slot.AsSpan(24), extent.LogId);
        BinaryPrimitives.WriteUInt64LittleEndian(_slot.AsSpan(32), extent.Segment);
        BinaryPrimitives.WriteUInt64LittleEndian(_slot.AsSpan(40), extent.Batch);
        BinaryPrimitives.WriteUInt32LittleEndian(
            _slot.AsSpan(ChecksumOffset), Crc32C.Of(_slot.AsSpan(0, ChecksumOffset)));
        _file.Write((long)(sequence % 2) * SlotBytes, [_slot]);
        _file.SyncData();
        _sequence = sequence;
        Latest = extent;
    }

    public void Dispose() => _file.Dispose();

    private static LogExtentFile Create(IDisk disk, string dataDirectory, string path, ulong logId)
    {
        string temporary = path + ".tmp";
        using (IDiskFile target = disk.Open(temporary, DiskFileMode.Empty))
        {
            target.Write(0, [new byte[2 * SlotBytes]]);
            new LogExtentFile(target).Write(new LogExtent(logId, 0, 0));
        }

        disk.Rename(temporary, path);
        disk.SyncDirectory(dataDirectory);
        LogExtentFile made = new(disk.Open(path, DiskFileMode.Existing));
        made.Read();
        return made;
    }

    private void Read()
    {
        byte[] slot = new byte[UsedBytes];
        for (int i = 0; i < 2; i++)
        {
            if (_file.Read(i * SlotBytes, slot) == UsedBytes
                && IsIntact(slot)
                && BinaryPrimitives.ReadUInt64LittleEndian(slot.AsSpan(16)) is var sequence
                && sequence > _sequence)
            {
                _sequence = sequence;
                Latest = new LogExtent(
                    BinaryPrimitives.ReadUInt64LittleEndian(slot.AsSpan(24)),
                    BinaryPrimitives.ReadUInt64LittleEndian(slot.AsSpan(32)),
                    BinaryPrimitives.ReadUInt64LittleEndian(slot.AsSpan(40)));
            }
        }

        if (_sequence == 0)
        {
            throw new LogDamagedException(_file.Path, 0, "neither of its two records is intact");
        }
    }

    private static bool IsIntact(ReadOnlySpan<byte> slot) =>
        slot.StartsWith(Magic)
        && BinaryPrimitives.ReadUInt32LittleEndian(slot[8..]) == Format
        && BinaryPrimitives.ReadUInt32LittleEndian(slot[ChecksumOffset..]) == Crc32C.Of(slot[..ChecksumOffset]);
}
