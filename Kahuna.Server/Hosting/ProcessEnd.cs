using System.Runtime.InteropServices;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Ends the process with exit code 1 after an unexpected exception: the reason to standard error and to the log, then <c>_exit</c>, as a kill would.
/// Nothing is closed in order, because what would be written then is not known to be right; what was acknowledged is on disk. Any thread; the first call counts.
/// </summary>
/// <param name="loggers">Receives the reason with its stack trace; its lines are written out before the process ends. Null where there is no log: standard error gets the stack trace.</param>
internal sealed partial class ProcessEnd(ILoggerFactory? loggers) : IFatalErrors
{
    private const int ExitCode = 1;

    /// <summary>How long writing the reason may take: standard error may be a pipe that nobody reads, and memory may have run out.</summary>
    private static readonly TimeSpan s_tellMax = TimeSpan.FromSeconds(3);

    private static readonly ManualResetEventSlim s_raised = new();
    private static readonly ManualResetEventSlim s_told = new();
    private static int s_begun;
    private static int s_watched;

    /// <summary>Makes ready everything that ending needs, because there may be no memory then. Once per process is enough.</summary>
    public static void Prepare()
    {
        if (Interlocked.Exchange(ref s_watched, 1) != 0)
        {
            return;
        }

        if (!OperatingSystem.IsWindows())
        {
            Marshal.PrelinkAll(typeof(ProcessEnd));
        }

        new Thread(EndWhenTold) { IsBackground = true, Name = "kahuna-end" }.Start();
    }

    /// <inheritdoc/>
    public void Raise(string where, Exception error)
    {
        Prepare();
        if (Interlocked.Exchange(ref s_begun, 1) == 0)
        {
            s_raised.Set();
            Tell(where, error);
            s_told.Set();
        }

        // The caller's work must not go on while the process ends.
        Thread.Sleep(Timeout.Infinite);
    }

    /// <summary>What standard error gets.</summary>
    internal string Words(string where, Exception error) =>
        $"kahuna-server: the node stops: unexpected error in {where}: {(loggers is null ? error.ToString() : $"{error.GetType().Name}: {error.Message}")}";

    private void Tell(string where, Exception error)
    {
        try
        {
            Console.Error.WriteLine(Words(where, error));
            if (loggers is not null)
            {
                loggers.CreateLogger("Kahuna.Node").Unexpected(where, error);
                loggers.Dispose();
            }
        }
        catch (Exception)
        {
            // The process ends all the same, only with less of a reason.
        }
    }

    private static void EndWhenTold()
    {
        s_raised.Wait();
        s_told.Wait(s_tellMax);
        if (!OperatingSystem.IsWindows())
        {
            ExitNow(ExitCode);
        }

        Environment.Exit(ExitCode);
    }

    /// <summary>Ends the process without handlers or destructors, which could wait for a thread that will never answer.</summary>
    [LibraryImport("libc", EntryPoint = "_exit")]
    private static partial void ExitNow(int code);
}
