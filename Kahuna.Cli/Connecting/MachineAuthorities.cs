using System.Runtime.InteropServices;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// The authorities of the machine. On Linux .NET reads all of them before it checks the first certificate, also where
/// only others count; with the usual list that takes a tenth of a second. Static; one per process.
/// </summary>
internal static partial class MachineAuthorities
{
    /// <summary>
    /// Lets this process find none. Only for a process that connects where none of them counts, and before its first
    /// connection. Programs that it starts later get the variables as they were.
    /// </summary>
    public static void LeaveOut()
    {
        if (!OperatingSystem.IsLinux())
        {
            return;
        }

        // .NET copies the variables when they are first listed, and OpenSSL's are read from those of the process.
        _ = Environment.GetEnvironmentVariables();
        _ = SetVariable("SSL_CERT_FILE", "/dev/null", overwrite: 1);
        _ = SetVariable("SSL_CERT_DIR", "/dev/null", overwrite: 1);
    }

    [LibraryImport("libc", EntryPoint = "setenv", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int SetVariable(string name, string value, int overwrite);
}
