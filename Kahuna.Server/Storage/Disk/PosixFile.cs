using System.Buffers;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>An open file of <see cref="PosixDisk"/>. One writer at a time; reads from any thread.</summary>
internal sealed unsafe class PosixFile(string path, SafeFileHandle handle) : IDiskFile
{
    /// <summary>
    /// Most parts of one system call: far below the system's limit of 1,024, so that they fit on the stack.
    /// </summary>
    private const int PartsMax = 64;

    private readonly MemoryHandle[] _pins = new MemoryHandle[PartsMax];

    public string Path => path;

    public long Length
    {
        get
        {
            long end = PosixCalls.Seek(handle, 0, PosixCalls.SeekEnd);
            return end >= 0
                ? end
                : throw new DiskException("reading the length of", path, Marshal.GetLastPInvokeError());
        }
    }

    public int Read(long offset, Span<byte> target)
    {
        int done = 0;
        fixed (byte* start = target)
        {
            while (done < target.Length)
            {
                nint count = PosixCalls.Read(handle, start + done, target.Length - done, offset + done);
                if (count < 0)
                {
                    int error = Marshal.GetLastPInvokeError();
                    if (error == PosixCalls.Interrupted)
                    {
                        continue;
                    }

                    throw new DiskException("reading", path, error);
                }

                if (count == 0)
                {
                    break;
                }

                done += (int)count;
            }
        }

        return done;
    }

    public void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts)
    {
        while (!parts.IsEmpty)
        {
            ReadOnlySpan<ReadOnlyMemory<byte>> some = parts[..Math.Min(parts.Length, PartsMax)];
            offset += some.Length == 1 ? WriteOne(offset, some[0].Span) : WriteSome(offset, some);
            parts = parts[some.Length..];
        }
    }

    public void SyncData()
    {
        // Do not repeat even an interrupted sync: the first call may have consumed the pages' error.
        if (PosixCalls.SyncData(handle) != 0)
        {
            throw new DiskException("syncing", path, Marshal.GetLastPInvokeError());
        }
    }

    public void Dispose() => handle.Dispose();

    /// <summary>Writes bytes from <paramref name="offset"/> on. Returns how many.</summary>
    public long WriteOne(long offset, ReadOnlySpan<byte> bytes)
    {
        fixed (byte* start = bytes)
        {
            long done = 0;
            while (done < bytes.Length)
            {
                done += Checked(PosixCalls.Write(handle, start + done, (nint)(bytes.Length - done), offset + done));
            }
        }

        return bytes.Length;
    }

    private long WriteSome(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts)
    {
        PosixCalls.Vector* vectors = stackalloc PosixCalls.Vector[PartsMax];
        long total = 0;
        try
        {
            for (int i = 0; i < parts.Length; i++)
            {
                _pins[i] = parts[i].Pin();
                vectors[i] = new PosixCalls.Vector { Start = (byte*)_pins[i].Pointer, Length = parts[i].Length };
                total += parts[i].Length;
            }

            WriteVectors(offset, vectors, parts.Length, total);
        }
        finally
        {
            for (int i = 0; i < parts.Length; i++)
            {
                _pins[i].Dispose();
                _pins[i] = default;
            }
        }

        return total;
    }

    private void WriteVectors(long offset, PosixCalls.Vector* vectors, int count, long total)
    {
        long done = 0;
        int first = 0;
        while (done < total)
        {
            long written = Checked(PosixCalls.WriteVector(handle, vectors + first, count - first, offset + done));
            done += written;

            // A short write continues in the middle of the part where it ended.
            while (first < count && written >= vectors[first].Length)
            {
                written -= vectors[first].Length;
                first++;
            }

            if (first < count)
            {
                vectors[first].Start += written;
                vectors[first].Length -= (nint)written;
            }
        }

        InvariantException.Require(first == count && done == total, "a write ends with its last part");
    }

    private long Checked(nint written)
    {
        if (written > 0)
        {
            return written;
        }

        int error = written == 0 ? DiskException.InputOutputError : Marshal.GetLastPInvokeError();
        return error == PosixCalls.Interrupted ? 0 : throw new DiskException("writing", path, error);
    }
}
