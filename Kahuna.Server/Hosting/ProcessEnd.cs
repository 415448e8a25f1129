using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Ends the process with exit code 1 after an unexpected exception. Writes the reason to standard error and to the log,
/// then calls <c>_exit</c>, like a kill. Nothing is closed in order, because its state may be wrong; acknowledged
/// writes are on disk. Any thread; only the first call counts.
/// </summary>
/// <param name="loggers">Receives the reason with its stack trace, and is flushed before the process ends. Null without
/// a log: the stack trace goes to standard error.</param>
internal sealed partial class ProcessEnd(ILoggerFactory? loggers) : IFatalErrors
{
    private const int ExitCode = 1;

    /// <summary>
    /// How long writing the reason may take: standard error may be a pipe that nobody reads, and memory may have run
    /// out.
    /// </summary>
    private static readonly TimeSpan s_reportMax = TimeSpan.FromSeconds(3);

    private static readonly ManualResetEventSlim s_raised = new();
    private static readonly ManualResetEventSlim s_reported = new();
    private static int s_begun;
    private static int s_watched;

    /// <summary>Allocates in advance what ending needs, because memory may have run out then. Idempotent.</summary>
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

        new Thread(ExitWhenReported) { IsBackground = true, Name = "kahuna-end" }.Start();
    }

    /// <inheritdoc/>
    public void Raise(string where, Exception error)
    {
        Prepare();
        if (Interlocked.Exchange(ref s_begun, 1) == 0)
        {
            s_raised.Set();
            Report(where, error);
            s_reported.Set();
        }

        // The caller must not continue while the process ends.
        Thread.Sleep(Timeout.Infinite);
    }

    /// <summary>The text for standard error.</summary>
    internal string Message(string where, Exception error) =>
        $"kahuna-server: the node stops: unexpected error in {where}: "
            + $"{(loggers is null ? error.ToString() : $"{error.GetType().Name}: {error.Message}")}";

    private void Report(string where, Exception error)
    {
        try
        {
            Console.Error.WriteLine(Message(where, error));
            if (loggers is not null)
            {
                loggers.CreateLogger("Kahuna.Node").Unexpected(where, error);
                loggers.Dispose();
            }
        }
        catch (Exception)
        {
            // The process ends all the same, with less of a reason.
        }
    }

    private static void ExitWhenReported()
    {
        s_raised.Wait();
        s_reported.Wait(s_reportMax);
        if (!OperatingSystem.IsWindows())
        {
            ExitNow(ExitCode);
        }

        Environment.Exit(ExitCode);
    }

    /// <summary>
    /// Ends the process without handlers or destructors, which could wait for a thread that never answers.
    /// </summary>
    [LibraryImport("libc", EntryPoint = "_exit")]
    private static partial void ExitNow(int code);
}
