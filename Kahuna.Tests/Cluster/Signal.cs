using System.Runtime.InteropServices;

namespace Kahuna.Tests.Cluster;

/// <summary>Signals of POSIX that .NET has no call for. Stateless.</summary>
internal static partial class Signal
{
    public const int Interrupt = 2;
    public const int Terminate = 15;
    public const int Continue = 18;
    public const int Stop = 19;
    public const int Kill = 9;

    /// <summary>Sends a signal; a process that is gone already is no error.</summary>
    public static void Send(int processId, int signal)
    {
        const int NoSuchProcess = 3;
        if (SendSignal(processId, signal) != 0 && Marshal.GetLastPInvokeError() is var error && error != NoSuchProcess)
        {
            throw new InvalidOperationException($"Signal {signal} to process {processId} failed with error {error}.");
        }
    }

    [LibraryImport("libc", EntryPoint = "kill", SetLastError = true)]
    private static partial int SendSignal(int processId, int signal);
}
