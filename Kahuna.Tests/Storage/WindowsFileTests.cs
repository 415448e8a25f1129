using Kahuna.Server.Storage.Disk;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Tests.Storage;

/// <summary>
/// What of the file on Windows is the class library's, and so runs here too; and the numbers that differ between the
/// systems.
/// </summary>
public sealed class WindowsFileTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    private string At => Path.Combine(_directory.Path, "f");

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(65)]
    public void All_parts_are_written_one_after_the_other(int parts)
    {
        using WindowsFile file = new(At, File.OpenHandle(At, FileMode.Create, FileAccess.ReadWrite));
        byte[][] pieces = [.. Enumerable.Range(0, parts).Select(i => Enumerable.Repeat((byte)i, i * 7 % 50).ToArray())];
        file.Write(100, [.. pieces.Select(piece => new ReadOnlyMemory<byte>(piece))]);
        byte[] expected = [.. pieces.SelectMany(piece => piece)];
        Assert.Equal(expected.Length == 0 ? 0 : 100 + expected.Length, file.Length);
        byte[] read = new byte[expected.Length + 10];
        Assert.Equal(expected.Length, file.Read(100, read));
        Assert.Equal(expected, read[..expected.Length]);
        Assert.Equal(0, file.Read(1_000_000, read));
    }

    [Fact]
    public void An_error_of_the_class_library_is_the_disks()
    {
        SafeFileHandle handle = File.OpenHandle(At, FileMode.Create, FileAccess.Write);
        using WindowsFile file = new(At, handle);
        DiskException error = Assert.Throws<DiskException>(() => file.Read(0, new byte[1]));
        Assert.StartsWith($"reading {At} failed: ", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_full_disk_is_told_from_other_errors()
    {
        Assert.True(new DiskException("writing", "f", DiskException.NoSpaceLeft).IsNoSpace);
        Assert.True(new DiskException("writing", "f", PosixNumbers.Current.Quota).IsNoSpace);
        Assert.False(new DiskException("writing", "f", DiskException.InputOutputError).IsNoSpace);
    }

    /// <summary>
    /// A number of the one system must not be taken for that of the other: what creates on macOS truncates on Linux.
    /// </summary>
    [Fact]
    public void Numbers_are_those_of_the_systems_headers()
    {
        Assert.Equal(new PosixNumbers(0x40, 0x200, 0x80000, 11, 95, 122), PosixNumbers.Linux);
        Assert.Equal(new PosixNumbers(0x200, 0x400, 0x1000000, 35, 45, 69), PosixNumbers.MacOS);
        Assert.Same(PosixNumbers.Linux, PosixNumbers.Current);
    }
}
