using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// An open file of <see cref="WindowsDisk"/>. The class library reads and writes; a system call syncs, because the
/// library hides sync errors. One writer at a time; reads from any thread.
/// </summary>
internal sealed class WindowsFile(string path, SafeFileHandle handle) : IDiskFile
{
    public string Path => path;

    public long Length => RandomAccess.GetLength(handle);

    public int Read(long offset, Span<byte> target)
    {
        int done = 0;
        try
        {
            while (done < target.Length
                && RandomAccess.Read(handle, target[done..], offset + done) is var count and > 0)
            {
                done += count;
            }
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw DiskException.Of("reading", path, error);
        }

        return done;
    }

    public void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts)
    {
        try
        {
            foreach (ReadOnlyMemory<byte> part in parts)
            {
                RandomAccess.Write(handle, part.Span, offset);
                offset += part.Length;
            }
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw DiskException.Of("writing", path, error);
        }
    }

    [SupportedOSPlatform("windows")]
    public void SyncData()
    {
        if (!WindowsCalls.Sync(handle))
        {
            throw new DiskException("syncing", path, Marshal.GetLastPInvokeError());
        }
    }

    public void Dispose() => handle.Dispose();
}
