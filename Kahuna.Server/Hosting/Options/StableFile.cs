using System.ComponentModel;
using System.Runtime.InteropServices;
using Kahuna.Server.Storage.Disk;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Writes small files atomically and durably, so that a power loss leaves a whole file or none. Stateless.
/// </summary>
internal static class StableFile
{
    private const UnixFileMode OwnerOnly = UnixFileMode.UserRead | UnixFileMode.UserWrite;

    private const UnixFileMode OwnerWritesAllRead = OwnerOnly | UnixFileMode.GroupRead | UnixFileMode.OtherRead;

    /// <summary>Writes a temporary file, syncs it, renames it, and syncs the directory.</summary>
    /// <param name="path">The final path.</param>
    /// <param name="content">The whole content.</param>
    /// <param name="secret">Whether only the owner may read it, from its creation on.</param>
    /// <param name="replace">Whether to replace an existing file; otherwise one is an error.</param>
    public static void Write(string path, ReadOnlySpan<byte> content, bool secret = false, bool replace = true)
    {
        string temporary = $"{path}.{Environment.ProcessId}-{Guid.NewGuid():N}.tmp";
        FileStreamOptions options = new() { Mode = FileMode.CreateNew, Access = FileAccess.Write, BufferSize = 0 };
        if (!OperatingSystem.IsWindows())
        {
            options.UnixCreateMode = secret ? OwnerOnly : OwnerWritesAllRead;
        }

        try
        {
            using (FileStream file = new(temporary, options))
            {
                file.Write(content);
                Sync(file.SafeFileHandle, temporary);
            }

            File.Move(temporary, path, replace);
            SyncDirectory(Path.GetDirectoryName(path)!);
        }
        finally
        {
            File.Delete(temporary);
        }
    }

    /// <summary>Removes other users' access to a file, on systems with such permissions.</summary>
    public static void KeepToOwner(string path)
    {
        if (!OperatingSystem.IsWindows() && File.GetUnixFileMode(path) != OwnerOnly)
        {
            File.SetUnixFileMode(path, OwnerOnly);
        }
    }

    private static void SyncDirectory(string directory)
    {
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        // The class library cannot open directories.
        int descriptor = PosixCalls.Open(directory, PosixCalls.ReadOnly, 0);
        using SafeFileHandle handle = new(descriptor, ownsHandle: true);
        if (descriptor < 0)
        {
            throw new IOException(
                $"Cannot open {directory}: {new Win32Exception(Marshal.GetLastPInvokeError()).Message}.");
        }

        Sync(handle, directory);
    }

    private static void Sync(SafeFileHandle handle, string path)
    {
        // The class library's own flush hides errors.
        if (OperatingSystem.IsWindows() ? !WindowsCalls.Sync(handle) : PosixCalls.Sync(handle) != 0)
        {
            throw new IOException(
                $"Cannot bring {path} to stable storage: {new Win32Exception(Marshal.GetLastPInvokeError()).Message}.");
        }
    }
}
