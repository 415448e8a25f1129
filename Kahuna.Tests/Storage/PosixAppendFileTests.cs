using Kahuna.Server.Storage.Disk;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Tests.Storage;

/// <summary>Files that are written past the page cache have the bytes that were written, wherever those end.</summary>
public sealed class PosixAppendFileTests : IDisposable
{
    private const int FileBytes = 4 << 20;
    private const byte Old = 0xEE;

    private readonly TemporaryDirectory _directory = new();
    private readonly PosixDisk _disk = new();

    private string At(string name) => Path.Combine(_directory.Path, name);

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(1, 600)]
    [InlineData(2, 20_000)]
    [InlineData(3, 700_000)]
    public void Appended_bytes_are_read_back_by_others(int seed, int largest)
    {
        byte[] expected = Make("f");
        Random random = new(seed);
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Appended);
        using IDiskFile reader = _disk.Open(At("f"), DiskFileMode.Existing);
        int end = random.Next(10_000);
        byte[] read = new byte[FileBytes];
        for (int i = 0; i < 200 && end + (4 * largest) < FileBytes; i++)
        {
            int begun = end;
            ReadOnlyMemory<byte>[] parts = new ReadOnlyMemory<byte>[random.Next(1, 4)];
            for (int part = 0; part < parts.Length; part++)
            {
                byte[] bytes = new byte[random.Next(largest)];
                random.NextBytes(bytes);
                bytes.CopyTo(expected, end);
                end += bytes.Length;
                parts[part] = bytes;
            }

            file.Write(begun, parts);
            file.SyncData();

            // A reader that has the block before in its cache sees the new one.
            int from = Math.Max(0, begun - 5_000);
            reader.Read(from, read.AsSpan(from, end - from));
            Assert.True(read.AsSpan(from, end - from).SequenceEqual(expected.AsSpan(from, end - from)));
        }

        Assert.Equal(FileBytes, file.Length);
        file.Dispose();
        byte[] whole = File.ReadAllBytes(At("f"));
        int block = (end + PosixAppendFile.BlockBytes - 1) / PosixAppendFile.BlockBytes * PosixAppendFile.BlockBytes;
        Assert.True(whole.AsSpan(0, end).SequenceEqual(expected.AsSpan(0, end)));
        Assert.True(whole.AsSpan(block).SequenceEqual(expected.AsSpan(block)));
    }

    [Fact]
    public void A_write_elsewhere_keeps_what_is_before_it_in_its_block()
    {
        byte[] expected = Make("f");
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Appended);
        foreach (int offset in (int[])[10_000, 5_000, 100, 9_000, 1_000_000])
        {
            byte[] bytes = [.. Enumerable.Range(0, 300).Select(i => (byte)(i + offset))];
            file.Write(offset, [bytes]);
            bytes.CopyTo(expected, offset);
            byte[] before = new byte[offset % PosixAppendFile.BlockBytes];
            file.Read(offset - before.Length, before);
            Assert.True(before.AsSpan().SequenceEqual(expected.AsSpan(offset - before.Length, before.Length)));
            int behind = (offset + 300 + PosixAppendFile.BlockBytes - 1)
                / PosixAppendFile.BlockBytes * PosixAppendFile.BlockBytes;
            expected.AsSpan(offset + 300, behind - offset - 300).Clear();
        }

        Assert.True(File.ReadAllBytes(At("f")).AsSpan().SequenceEqual(expected));
    }

    [Fact]
    public void A_write_of_whole_blocks_touches_nothing_else()
    {
        byte[] expected = Make("f");
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Appended);
        byte[] bytes = new byte[3 * PosixAppendFile.BlockBytes];
        file.Write(PosixAppendFile.BlockBytes, [bytes]);
        bytes.CopyTo(expected, PosixAppendFile.BlockBytes);
        file.Write(4 * PosixAppendFile.BlockBytes, []);
        Assert.True(File.ReadAllBytes(At("f")).AsSpan().SequenceEqual(expected));
    }

    [Fact]
    public void Where_whole_blocks_would_make_a_file_longer_it_is_written_as_ever()
    {
        File.WriteAllBytes(At("f"), new byte[5_000]);
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Appended);
        file.Write(4_990, [new byte[] { 1, 2, 3 }]);
        Assert.IsType<PosixFile>(file);
        Assert.Equal(5_000, file.Length);
    }

    [Fact]
    public void What_the_file_system_refuses_goes_through_the_cache()
    {
        byte[] expected = Make("f");
        PosixFile cached = (PosixFile)_disk.Open(At("f"), DiskFileMode.Existing);
        SafeFileHandle refusing = File.OpenHandle(
            "/proc/self/oom_score_adj", FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        using PosixAppendFile file = new(cached, refusing);
        byte[] bytes = [.. Enumerable.Repeat((byte)7, 500_000)];
        file.Write(100, [bytes]);
        file.Write(100 + bytes.Length, [bytes]);
        file.SyncData();
        bytes.CopyTo(expected, 100);
        bytes.CopyTo(expected, 100 + bytes.Length);
        int end = 100 + (2 * bytes.Length);
        Assert.True(File.ReadAllBytes(At("f")).AsSpan(0, end).SequenceEqual(expected.AsSpan(0, end)));
    }

    [Fact]
    public void A_write_that_fails_says_why()
    {
        Make("f");
        PosixFile cached = (PosixFile)_disk.Open(At("f"), DiskFileMode.Existing);
        using PosixAppendFile file = new(
            cached, File.OpenHandle("/dev/full", FileMode.Open, FileAccess.Write, FileShare.ReadWrite));
        DiskException error = Assert.Throws<DiskException>(() => file.Write(0, [new byte[10]]));
        Assert.Equal(DiskException.NoSpaceLeft, error.Number);
        Assert.Equal(Old, File.ReadAllBytes(At("f"))[0]);
    }

    [Fact]
    public void Nothing_is_appended_behind_the_end_of_a_file()
    {
        Make("f");
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Appended);
        Assert.Throws<DiskException>(() => file.Write(FileBytes + 100, [new byte[10]]));
    }

    private byte[] Make(string name)
    {
        byte[] bytes = new byte[FileBytes];
        Array.Fill(bytes, Old);
        File.WriteAllBytes(At(name), bytes);
        return bytes;
    }
}
