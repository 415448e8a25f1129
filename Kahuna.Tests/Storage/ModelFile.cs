using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>An open file of <see cref="ModelDisk"/>; dead after the disk's next crash.</summary>
internal sealed class ModelFile(ModelDisk disk, string path, ModelInode inode, int life) : IDiskFile
{
    private bool _closed;

    public string Path => path;

    public long Length
    {
        get
        {
            Use();
            return inode.Length;
        }
    }

    public int Read(long offset, Span<byte> target)
    {
        Use();
        disk.Check(DiskStep.Read, "reading", path);
        int count = (int)Math.Clamp(inode.Length - offset, 0, target.Length);
        inode.Current.AsSpan((int)Math.Min(offset, inode.Length), count).CopyTo(target);
        return count;
    }

    public void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts)
    {
        Use();
        disk.Check(DiskStep.Write, "writing", path);
        foreach (ReadOnlyMemory<byte> part in parts)
        {
            disk.CheckRoom(path, offset + part.Length - inode.Length);
            inode.Write((int)offset, part.Span);
            offset += part.Length;
        }
    }

    public void SyncData()
    {
        Use();
        try
        {
            disk.Check(DiskStep.SyncData, "syncing", path);
        }
        catch (DiskException)
        {
            inode.FailSync();
            throw;
        }

        inode.Sync();
        disk.CountSync();
    }

    public void Dispose() => _closed = true;

    private void Use() => ObjectDisposedException.ThrowIf(_closed || disk.Life != life, this);
}
