using System.ComponentModel;
using System.Runtime.InteropServices;
using Kahuna.Server.Storage.Disk;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Small files that are there whole or not at all, also after a loss of power. Stateless.</summary>
internal static class StableFile
{
    private const UnixFileMode OwnerOnly = UnixFileMode.UserRead | UnixFileMode.UserWrite;

    private const UnixFileMode OwnerWritesAllRead = OwnerOnly | UnixFileMode.GroupRead | UnixFileMode.OtherRead;

    /// <summary>Writes a file beside its place, syncs it, moves it there, and syncs the directory.</summary>
    /// <param name="path">The place.</param>
    /// <param name="content">The whole content.</param>
    /// <param name="secret">Whether only the owner may read it, from its first moment on.</param>
    /// <param name="replace">Whether a file that is there already is replaced; otherwise it is an error.</param>
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

    /// <summary>Takes away other users' access to a file, where the system knows such a thing.</summary>
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

        // The class library opens no directories.
        int descriptor = PosixCalls.Open(directory, PosixCalls.ReadOnly, 0);
        using SafeFileHandle handle = new(descriptor, ownsHandle: true);
        if (descriptor < 0)
        {
            throw new IOException($"Cannot open {directory}: {new Win32Exception(Marshal.GetLastPInvokeError()).Message}.");
        }

        Sync(handle, directory);
    }

    private static void Sync(SafeFileHandle handle, string path)
    {
        // The class library's own flush hides errors.
        if (OperatingSystem.IsWindows() ? !WindowsCalls.Sync(handle) : PosixCalls.Sync(handle) != 0)
        {
            throw new IOException($"Cannot bring {path} to stable storage: {new Win32Exception(Marshal.GetLastPInvokeError()).Message}.");
        }
    }
}
