using System.Runtime.InteropServices;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting;

/// <summary>The life of the <c>kahuna-server</c> process around its one node: start, signals, exit code. One per process.</summary>
internal static class ServerProcess
{
    /// <summary>Ends the process after an exception on a thread that belongs to no node's part: the stack trace is the only trace of it.</summary>
    private static readonly ProcessEnd s_withoutLog = new(loggers: null);

    /// <summary>
    /// Runs until SIGTERM or SIGINT (exit code 0 after a graceful stop, 1 when a group had stopped before) or until the node cannot go on (1). Reasons are on
    /// standard error.
    /// </summary>
    public static async Task<int> RunAsync(NodeOptions options)
    {
        if (options.Rebuild && !Rebuild(options))
        {
            return 1;
        }

        TaskCompletionSource asked = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using PosixSignalRegistration term = PosixSignalRegistration.Create(PosixSignal.SIGTERM, Ask);
        using PosixSignalRegistration interrupt = PosixSignalRegistration.Create(PosixSignal.SIGINT, Ask);
        void Ask(PosixSignalContext context)
        {
            context.Cancel = true;
            asked.TrySetResult();
        }

        KahunaNode node;
        try
        {
            Console.WriteLine($"kahuna-server {ProductVersion.Text}: node {options.NodeId}, {options.Advertise.GetLeftPart(UriPartial.Authority)}, data in {options.DataDirectory}");
            ProcessEnd.Prepare();
            AppDomain.CurrentDomain.UnhandledException += static (_, unhandled) => s_withoutLog.Raise("a thread", (Exception)unhandled.ExceptionObject);
            Task warmed = Task.Run(NodeServices.Warm);
            node = await KahunaNode.StartAsync(options).ConfigureAwait(false);
            await warmed.ConfigureAwait(false);
            IdleMemory.Compact();
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            Console.Error.WriteLine("kahuna-server: " + error.Message);
            return 1;
        }

        await Task.WhenAny(asked.Task, node.Fatal).ConfigureAwait(false);
        if (!node.Fatal.IsCompleted)
        {
            await node.DisposeAsync().ConfigureAwait(false);
            return CodeAfterStop(node.View, Console.Error);
        }

        // The log is dead, or the others do not take this node's directory: nothing can be acknowledged, and a graceful stop could only wait for it.
        Exception reason = await node.Fatal.ConfigureAwait(false);
        Console.Error.WriteLine("kahuna-server: the node stops: " + reason.Message);
        return 1;
    }

    /// <summary>Exit code after a graceful stop; the reason for one that is not 0 goes to <paramref name="errors"/>.</summary>
    internal static int CodeAfterStop(ClusterView view, TextWriter errors)
    {
        if (view.FirstFailure is not { } failure)
        {
            return 0;
        }

        errors.WriteLine("kahuna-server: " + failure);
        return 1;
    }

    /// <summary>False, with the reason on standard error, when the node must not start.</summary>
    private static bool Rebuild(NodeOptions options)
    {
        try
        {
            DirectoryRebuild.Run(options, Console.IsInputRedirected || Console.IsOutputRedirected ? null : Console.In, Console.Out);
            return true;
        }
        catch (DataDirectoryException refusal)
        {
            Console.Error.WriteLine("kahuna-server: " + refusal.Message);
            return false;
        }
    }
}
