using System.Runtime.InteropServices;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Runs the one node of the <c>kahuna-server</c> process: start, signals, exit code. One per process.
/// </summary>
internal static class ServerProcess
{
    /// <summary>
    /// Handles exceptions on threads that belong to no part of the node. Without a log, the stack trace goes to
    /// standard error.
    /// </summary>
    private static readonly ProcessEnd s_withoutLog = new(loggers: null);

    /// <summary>
    /// Runs until SIGTERM or SIGINT, or until the node fails. Exit code 0 after a graceful stop; 1 if the node failed
    /// or one of its groups had stopped. Reasons go to standard error.
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
            Console.WriteLine(
                $"kahuna-server {ProductVersion.Text}: node {options.NodeId}, "
                    + $"{options.Advertise.GetLeftPart(UriPartial.Authority)}, data in {options.DataDirectory}");
            ProcessEnd.Prepare();
            EnsureHome();
            AppDomain.CurrentDomain.UnhandledException += static (_, unhandled) => s_withoutLog.Raise(
                "a thread", (Exception)unhandled.ExceptionObject);
            Task warmed = Task.Run(NodeServices.Warm);
            node = await KahunaNode.StartAsync(options).ConfigureAwait(false);
            await warmed.ConfigureAwait(false);
            ProcessMemory.Compact();
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

        // The log is dead, or the other nodes refuse this node's directory: nothing can be acknowledged, so a graceful
        // stop could only wait.
        Exception reason = await node.Fatal.ConfigureAwait(false);
        Console.Error.WriteLine("kahuna-server: the node stops: " + reason.Message);
        return 1;
    }

    /// <summary>
    /// .NET looks for the user's certificates below its home directory, and throws if the user has none: one by number
    /// alone, without HOME. The root directory, which it takes in other places then, has no such certificates.
    /// </summary>
    private static void EnsureHome()
    {
        if (!OperatingSystem.IsWindows() && string.IsNullOrEmpty(Environment.GetEnvironmentVariable("HOME")))
        {
            Environment.SetEnvironmentVariable("HOME", Environment.GetFolderPath(
                Environment.SpecialFolder.UserProfile, Environment.SpecialFolderOption.DoNotVerify));
        }
    }

    /// <summary>
    /// The exit code after a graceful stop; the reason for a code other than 0 goes to <paramref name="errors"/>.
    /// </summary>
    internal static int CodeAfterStop(ClusterView view, TextWriter errors)
    {
        if (view.FirstFailure is not { } failure)
        {
            return 0;
        }

        errors.WriteLine("kahuna-server: " + failure);
        return 1;
    }

    /// <summary>
    /// Rebuilds the data directory. False, with the reason on standard error, if the node must not start.
    /// </summary>
    private static bool Rebuild(NodeOptions options)
    {
        try
        {
            DirectoryRebuild.Run(
                options, Console.IsInputRedirected || Console.IsOutputRedirected ? null : Console.In, Console.Out);
            return true;
        }
        catch (DataDirectoryException refusal)
        {
            Console.Error.WriteLine("kahuna-server: " + refusal.Message);
            return false;
        }
    }
}
