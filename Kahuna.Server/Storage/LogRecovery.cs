using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>Where recovery ended and writing continues. Both files are handed over.</summary>
internal readonly record struct LogTail(
    ulong LogId, ulong Segment, long Position, ulong NextBatch, IDiskFile File, LogExtentFile Extents);

/// <summary>
/// Recovery: reads the whole log once at the start. It finds every group's entries and hard state, tells a torn tail
/// (cut) from damage (refused), and clears the tail so that nothing dropped can come back. Used once, by one thread.
/// </summary>
internal sealed class LogRecovery(
    IDisk disk, SegmentFiles files, SegmentedLogOptions options, Action<ReportLine> report)
{
    private const int WindowBytes = 4 << 20;
    private const int ZerosBytes = 1 << 20;

    private readonly SegmentWindow _window = new(WindowBytes);
    private ulong _lastBatch;
    private bool _anyBatch;
    private long _lastBatchOffset;

    /// <summary>Index of what was found.</summary>
    public LogPositions Positions { get; } = new();

    /// <summary>What was found of each group.</summary>
    public Dictionary<uint, RecoveredGroup> Groups() => Positions.Groups.ToDictionary(
        group => group.Key,
        group => new RecoveredGroup(
            group.Value.HardState,
            [.. group.Value.Terms],
            group.Value.LastIndex,
            group.Value.Start,
            group.Value.StartTerm));

    /// <summary>Reads the log, or creates an empty one.</summary>
    /// <exception cref="LogDamagedException">Data that was on stable storage is missing or changed.</exception>
    public LogTail Run()
    {
        List<ulong> segments =
        [
            .. disk.List(files.Directory)
                .Select(name => SegmentFiles.TryParse(name, out ulong segment) ? segment : 0)
                .Where(segment => segment > 0)
                .Order(),
        ];
        LogExtentFile extents = LogExtentFile.Open(disk, files.DataDirectory, options, segments.Count > 0);
        try
        {
            CheckIdentity(segments);
            CheckNewest(segments, extents.Latest);
            disk.Delete(files.Temporary);
            return segments.Count > 0 ? ReadAll(segments, extents) : MakeFirst(extents);
        }
        catch
        {
            extents.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Checks the identity first: the log of another node may look incomplete against this node's record, but is whole.
    /// </summary>
    private void CheckIdentity(List<ulong> segments)
    {
        if (segments.Count > 0)
        {
            using IDiskFile file = disk.Open(files.Path(segments[0]), DiskFileMode.Existing);
            _window.Open(file, file.Length);
            ReadHeader(files.Path(segments[0]), segments[0], file.Length);
        }
    }

    /// <summary>
    /// Checks for missing newest segments. A segment is recorded before its first batch, and dropped only after all
    /// older ones.
    /// </summary>
    private void CheckNewest(List<ulong> segments, in LogExtent known)
    {
        if (segments.Count == 0 && known.Segment > 0)
        {
            throw new LogDamagedException(
                files.Path(known.Segment),
                0,
                "the file is missing, and so are all other segments of the log (is a disk not mounted?)");
        }

        if (segments.Count > 0 && segments[^1] < known.Segment)
        {
            throw new LogDamagedException(
                files.Path(segments[^1] + 1),
                0,
                $"the file is missing, and the log had segments up to {known.Segment}");
        }
    }

    private LogTail ReadAll(List<ulong> segments, LogExtentFile extents)
    {
        // Writing continues in the last segment with a batch. Later ones were prepared but not used, or hold one torn
        // batch.
        List<Scanned> scanned = [];
        foreach (ulong segment in segments)
        {
            if (scanned.Count > 0 && segment != scanned[^1].Header.Segment + 1)
            {
                throw new LogDamagedException(
                    files.Path(scanned[^1].Header.Segment + 1), 0, "the segment is missing, and a later one is there");
            }

            scanned.Add(Scan(segment, scanned));
        }

        if (scanned[0].Batches == 0 && scanned[0].Header.Segment > 1)
        {
            // A segment becomes the first one only after a batch in it, or in a later one, was synced.
            throw new LogDamagedException(
                scanned[0].Path,
                SegmentHeader.Bytes,
                "no intact batch begins here, and the segments before this one were dropped because there was one");
        }

        int tail = Math.Max(scanned.FindLastIndex(one => one.Batches > 0), 0);
        LogExtent known = extents.Latest;
        if (_lastBatch < known.Batch)
        {
            throw new LogDamagedException(
                scanned[tail].Path,
                scanned[tail].End,
                $"the log ends here with batch {_lastBatch}, and batch {known.Batch} was on stable storage");
        }

        if (scanned[tail].Header.Segment < known.Segment)
        {
            // Record it before they are deleted, so that a start after a crash in between does not miss them.
            extents.Write(known with { Segment = scanned[tail].Header.Segment });
        }

        for (int i = scanned.Count - 1; i > tail; i--)
        {
            DropUnused(scanned[i]);
        }

        return Continue(scanned[tail], extents);
    }

    private LogTail MakeFirst(LogExtentFile extents)
    {
        using SegmentPreparer preparer = new(disk, files, options, extents);
        IDiskFile file = preparer.Take(1);
        Positions.AddSegment(1, file.Length);
        return new LogTail(options.LogId, 1, SegmentHeader.Bytes, 1, file, extents);
    }

    /// <summary>Reads one segment's batches up to the first incomplete one.</summary>
    private Scanned Scan(ulong segment, List<Scanned> before)
    {
        string path = files.Path(segment);
        using IDiskFile file = disk.Open(path, DiskFileMode.Existing);
        _window.Open(file, file.Length);
        SegmentHeader header = ReadHeader(path, segment, file.Length);
        Positions.AddSegment(segment, file.Length);
        Scanned result = new(path, header, SegmentHeader.Bytes, Batches: 0);
        while (TryReadBatch(result, out ReadOnlyMemory<byte> body, out ulong number))
        {
            if (result.Batches == 0 && before.Count > 0 && before[^1].Batches == 0)
            {
                throw new LogDamagedException(
                    before[^1].Path, SegmentHeader.Bytes, "the segment has no batch, and a later one has");
            }

            Take(result, body, number);
            result =
                result with { End = result.End + LogRecord.BatchBytes + body.Length, Batches = result.Batches + 1 };
        }

        return RefuseDamage(result, file.Length, before);
    }

    private SegmentHeader ReadHeader(string path, ulong segment, long length)
    {
        SegmentHeader? header = SegmentHeader.Read(_window.Get(0, SegmentHeader.Bytes).Span, out string? wrong);
        if (header is null)
        {
            throw new LogDamagedException(path, 0, wrong!);
        }

        if (header.Value.Segment != segment)
        {
            throw new LogDamagedException(
                path, 0, $"the file's name does not agree with its header, which says segment {header.Value.Segment}");
        }

        if (header.Value.LogId != options.LogId)
        {
            throw new LogDamagedException(
                path,
                0,
                $"the segment belongs to another log ({header.Value.LogId:x16}), and this data directory "
                    + $"has log {options.LogId:x16}");
        }

        return length >= header.Value.Capacity
            ? header.Value
            : throw new LogDamagedException(
                path, length, $"the file ends here, and was made {header.Value.Capacity} bytes long");
    }

    /// <summary>Reads the batch at the end of what was read so far. False when it is incomplete.</summary>
    private bool TryReadBatch(Scanned segment, out ReadOnlyMemory<byte> body, out ulong number)
    {
        body = default;
        if (!LogRecord.TryReadBatch(
            _window.Get(segment.End, LogRecord.BatchBytes).Span, segment.Header.Seal, out number, out long bodyBytes)
            || bodyBytes > Array.MaxLength - LogRecord.BatchBytes
            || (_anyBatch && number != _lastBatch + 1))
        {
            return false;
        }

        body = _window.Get(segment.End, LogRecord.BatchBytes + (int)bodyBytes);
        if (body.Length < LogRecord.BatchBytes + bodyBytes)
        {
            return false;
        }

        body = body[LogRecord.BatchBytes..];
        ReadOnlySpan<byte> rest = body.Span;
        while (!rest.IsEmpty)
        {
            if (!LogRecord.TryTake(ref rest, segment.Header.Seal, out _, out _))
            {
                return false;
            }
        }

        return true;
    }

    private void Take(Scanned segment, ReadOnlyMemory<byte> body, ulong number)
    {
        long offset = segment.End + LogRecord.BatchBytes;
        ReadOnlySpan<byte> rest = body.Span;
        long at = offset;
        while (!rest.IsEmpty)
        {
            RecordHeader.TryRead(rest, out RecordHeader header);
            bool begins = segment.Batches == 0 && at == offset;
            string? wrong = begins && header.Kind != RecordKind.Checkpoint
                ? "the segment does not begin with a checkpoint"
                : FindWrong(header, rest.Slice(RecordHeader.Bytes, header.PayloadLength));
            if (wrong is not null)
            {
                throw new LogDamagedException(segment.Path, at, wrong);
            }

            // One record at a time, because the next one is checked against the index.
            Positions.AddRecords(segment.Header.Segment, at, rest[..(int)header.RecordBytes]);
            at += header.RecordBytes;
            rest = rest[(int)header.RecordBytes..];
        }

        InvariantException.Require(at == offset + body.Length, "the records of a whole batch fill it");
        Positions.AddRecords(segment.Header.Segment, at, []);
        _lastBatch = number;
        _lastBatchOffset = segment.End;
        _anyBatch = true;
    }

    /// <summary>
    /// Checks a record with a valid checksum against the records before it. Returns what is wrong, or null.
    /// </summary>
    private string? FindWrong(in RecordHeader header, ReadOnlySpan<byte> payload) => header.Kind switch
    {
        RecordKind.Entries when !Positions.Accepts(header.Group, header.Number) =>
            $"entries of group {header.Group} begin at {header.Number} and do not follow on those before",
        RecordKind.Entries when LogRecord.CountEntries(payload) != header.Count =>
            $"the record of group {header.Group} does not hold the {header.Count} entries that it names",
        RecordKind.HardState when payload.Length != LogRecord.HardStateBytes =>
            $"the hard state of group {header.Group} has {payload.Length} bytes",
        RecordKind.Restart when payload.Length != LogRecord.RestartBytes =>
            $"the restart of group {header.Group} has {payload.Length} bytes",
        RecordKind.Checkpoint => FindWrongCheckpoint(header, payload),
        _ => null,
    };

    /// <summary>
    /// A checkpoint must agree with the segments before it, if there are any. This detects a log that lacks some of
    /// them.
    /// </summary>
    private string? FindWrongCheckpoint(in RecordHeader header, ReadOnlySpan<byte> payload)
    {
        if (payload.Length != (long)header.Count * LogRecord.CheckpointBytes)
        {
            return $"the checkpoint of {header.Count} groups has {payload.Length} bytes";
        }

        for (int i = 0; _anyBatch && i < header.Count; i++)
        {
            GroupCheckpoint checkpoint = LogRecord.ReadCheckpoint(payload, i);
            ulong last = Positions.Find(checkpoint.Group)?.LastIndex.Value ?? 0;
            if (last != checkpoint.LastIndex.Value)
            {
                return $"the checkpoint says that the last entry of group {checkpoint.Group} is "
                    + $"{checkpoint.LastIndex}, and the records before end at {last}";
            }
        }

        return null;
    }

    /// <summary>
    /// Looks for damage behind the last whole batch. A batch begins only after the previous one was synced. So a batch
    /// behind the end of reading proves that the bytes there were on stable storage and are damaged now.
    /// </summary>
    private Scanned RefuseDamage(Scanned segment, long length, List<Scanned> before)
    {
        long lastUsed = segment.End;
        for (long offset = segment.End; offset < length;)
        {
            ReadOnlySpan<byte> piece = _window.Get(offset, WindowBytes).Span;
            if (piece.IsEmpty)
            {
                break;
            }

            int used = piece.LastIndexOfAnyExcept((byte)0);
            lastUsed = used >= 0 ? offset + used + 1 : lastUsed;
            for (int at = piece.IndexOf(LogRecord.BatchMagic); at >= 0;)
            {
                long begin = offset + at - LogRecord.BatchMagicOffset;
                ProveNoLater(segment, begin, before);
                piece = _window.Get(offset, WindowBytes).Span;
                int next = piece[(at + 1)..].IndexOf(LogRecord.BatchMagic);
                at = next < 0 ? -1 : at + 1 + next;
            }

            // Pieces overlap by the length of the magic, so that none is missed between two.
            offset += piece.Length < WindowBytes ? piece.Length : piece.Length - LogRecord.BatchMagic.Length;
        }

        return segment with { LastUsed = lastUsed };
    }

    private void ProveNoLater(Scanned segment, long begin, List<Scanned> before)
    {
        if (begin < segment.End
            || !LogRecord.TryReadBatch(
                _window.Get(begin, LogRecord.BatchBytes).Span, segment.Header.Seal, out ulong number, out _))
        {
            return;
        }

        // The batch right at the end may be the torn one. A batch behind it, or with a later number, was begun after it
        // was synced.
        if (begin == segment.End && (!_anyBatch || number == _lastBatch + 1))
        {
            return;
        }

        Scanned damaged = segment.Batches == 0 && begin == segment.End && before.Count > 0 ? before[^1] : segment;
        throw new LogDamagedException(
            damaged.Path,
            damaged.End,
            $"no intact batch begins here, and batch {number} follows later (in {segment.Path}, offset {begin})");
    }

    /// <summary>
    /// Removes a segment behind the last one with a batch: it was prepared but not used, or its first batch is torn.
    /// </summary>
    private void DropUnused(Scanned segment)
    {
        if (segment.LastUsed > segment.End && !segment.Header.Recycled)
        {
            ReportCut(segment);
        }

        disk.Delete(segment.Path);
        disk.SyncDirectory(files.Directory);
        Positions.DropLastSegment(segment.Header.Segment);
    }

    /// <summary>
    /// Makes the tail durable. The last batch may be in the system's memory only (a killed process, or a failed sync),
    /// so it is written and synced again, and the bytes behind it are cleared.
    /// </summary>
    private LogTail Continue(Scanned tail, LogExtentFile extents)
    {
        IDiskFile file = disk.Open(tail.Path, options.WriteMode);
        try
        {
            if (tail.Batches > 0)
            {
                InvariantException.Require(_lastBatchOffset < tail.End, "the last batch lies in the tail segment");
                _window.Open(file, tail.End);
                file.Write(_lastBatchOffset, [_window.Get(_lastBatchOffset, (int)(tail.End - _lastBatchOffset))]);
            }

            if (tail.LastUsed > tail.End)
            {
                Clear(file, tail);
            }

            file.SyncData();
            disk.SyncDirectory(files.Directory);
            return new LogTail(tail.Header.LogId, tail.Header.Segment, tail.End, _lastBatch + 1, file, extents);
        }
        catch
        {
            file.Dispose();
            throw;
        }
    }

    private void Clear(IDiskFile file, Scanned tail)
    {
        if (!tail.Header.Recycled || LogRecord.TryReadBatch(ReadFront(file, tail.End), tail.Header.Seal, out _, out _))
        {
            ReportCut(tail);
        }

        byte[] zeros = new byte[Math.Clamp(tail.LastUsed - tail.End, 0, ZerosBytes)];
        for (long offset = tail.End; offset < tail.LastUsed;)
        {
            int step = (int)Math.Min(zeros.Length, tail.LastUsed - offset);
            file.Write(offset, [zeros.AsMemory(0, step)]);
            offset += step;
        }
    }

    private static byte[] ReadFront(IDiskFile file, long offset)
    {
        byte[] front = new byte[LogRecord.BatchBytes];
        file.Read(offset, front);
        return front;
    }

    private void ReportCut(Scanned segment) => report(
        $"Log: cut an unfinished last write: file {segment.Path}, offset {segment.End}, "
            + $"{segment.LastUsed - segment.End} bytes dropped. None of it was acknowledged.");

    /// <summary>What was found in one segment.</summary>
    private sealed record Scanned(string Path, SegmentHeader Header, long End, long Batches)
    {
        /// <summary>
        /// Offset after the last byte that is not zero; <see cref="End"/> if all bytes behind it are zero.
        /// </summary>
        public long LastUsed { get; init; }
    }
}
