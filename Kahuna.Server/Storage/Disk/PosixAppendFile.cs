using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// A file of <see cref="PosixDisk"/> whose writes, each where the last one ended, go past the system's page cache
/// (docs/adr/0055-log-past-the-page-cache.md). The kernel takes only whole blocks for that, so the bytes of the last,
/// partly written block are kept, and written again with the next bytes. What is behind the written bytes in their last
/// block becomes zero. Reads go through the cache, which the kernel keeps in step. One writer at a time; reads from any
/// thread.
/// </summary>
internal sealed unsafe class PosixAppendFile(PosixFile file, SafeFileHandle direct) : IDiskFile
{
    /// <summary>A multiple of every disk's own blocks.</summary>
    public const int BlockBytes = 4096;

    /// <summary>More than that is written in pieces.</summary>
    private const int BufferBytes = 256 * 1024;

    private const long Nowhere = -1;

    private byte* _buffer = (byte*)NativeMemory.AlignedAlloc(BufferBytes, BlockBytes);

    // Where the last write ended: the bytes of its block before it are at the start of the buffer.
    private long _end = Nowhere;
    private bool _isRefused;

    public string Path => file.Path;

    public long Length => file.Length;

    public int Read(long offset, Span<byte> target) => file.Read(offset, target);

    public void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts)
    {
        int used = (int)(offset % BlockBytes);
        long start = offset - used;
        if (offset != _end && file.Read(start, new Span<byte>(_buffer, used)) != used)
        {
            throw new DiskException("writing behind the end of", Path, DiskException.InputOutputError);
        }

        _end = Nowhere;
        foreach (ReadOnlyMemory<byte> part in parts)
        {
            for (ReadOnlySpan<byte> rest = part.Span; !rest.IsEmpty;)
            {
                int count = Math.Min(rest.Length, BufferBytes - used);
                rest[..count].CopyTo(new Span<byte>(_buffer + used, count));
                rest = rest[count..];
                used += count;
                if (used == BufferBytes)
                {
                    WriteBlocks(start, BufferBytes);
                    start += BufferBytes;
                    used = 0;
                }
            }
        }

        WriteLast(start, used);
        _end = start + used;
    }

    public void SyncData() => file.SyncData();

    public void Dispose()
    {
        if (_buffer is not null)
        {
            NativeMemory.AlignedFree(_buffer);
            _buffer = null;
        }

        direct.Dispose();
        file.Dispose();
    }

    /// <summary>Writes the last blocks, and keeps the bytes of one that is not full.</summary>
    private void WriteLast(long start, int used)
    {
        int rest = used % BlockBytes;
        if (rest > 0)
        {
            new Span<byte>(_buffer + used, BlockBytes - rest).Clear();
        }

        int whole = used - rest + (rest > 0 ? BlockBytes : 0);
        WriteBlocks(start, whole);
        new Span<byte>(_buffer + used - rest, rest).CopyTo(new Span<byte>(_buffer, rest));
    }

    private void WriteBlocks(long offset, int count)
    {
        for (int done = 0; done < count && !_isRefused;)
        {
            nint written = PosixCalls.Write(direct, _buffer + done, count - done, offset + done);
            if (written < 0 && Marshal.GetLastPInvokeError() is var error && error != PosixCalls.Interrupted)
            {
                if (error != PosixCalls.Invalid)
                {
                    throw new DiskException("writing", Path, error);
                }

                // The file system opens files so, but does not write them.
                _isRefused = true;
            }
            else if (written >= 0)
            {
                // What ends within a block is written again from the block's start.
                int blocks = (int)written / BlockBytes * BlockBytes;
                done += blocks > 0 ? blocks
                    : throw new DiskException("writing", Path, DiskException.InputOutputError);
            }
        }

        if (_isRefused)
        {
            file.WriteOne(offset, new ReadOnlySpan<byte>(_buffer, count));
        }
    }
}
