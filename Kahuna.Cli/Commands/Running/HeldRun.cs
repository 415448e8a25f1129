using System.Globalization;
using Kahuna.Cli.Errors;

namespace Kahuna.Cli.Commands.Running;

/// <summary>
/// Runs a command for as long as a lock is held. When the lock is lost, or this process is interrupted, the command is
/// asked to end, and ended when it does not. Used once.
/// </summary>
/// <param name="call">The call, whose stop ends the command.</param>
/// <param name="what">What is held, for people: <c>lock 'nightly'</c>.</param>
/// <param name="lost">Cancelled before another can have the lock.</param>
internal sealed class HeldRun(CommandCall call, string what, CancellationToken lost)
{
    /// <summary>How long the command may take to end after it was asked to.</summary>
    public TimeSpan Grace { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>Runs it; the exit code of the command, or of what ended it.</summary>
    /// <param name="words">The command.</param>
    /// <param name="name">The name of the lock, for the command's environment.</param>
    /// <param name="token">The fencing token, for the command's environment.</param>
    public async Task<int> RunAsync(string[] words, string name, FencingToken token)
    {
        if (lost.IsCancellationRequested)
        {
            throw new CliException($"The {what} was lost before the command began. Try again.", ExitCode.Refused);
        }

        using ChildProcess child = ChildProcess.Start(
            words,
            [
                new("KAHUNA_LOCK", name),
                new("KAHUNA_FENCING_TOKEN", token.Value.ToString(CultureInfo.InvariantCulture)),
            ]);
        Task<int> ended = child.WaitAsync();
        TaskCompletionSource told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        CancellationTokenRegistration onLoss = lost.Register(() => told.TrySetResult());
        CancellationTokenRegistration onStop = call.Stop.Register(() => told.TrySetResult());
        await using (onLoss.ConfigureAwait(false))
        await using (onStop.ConfigureAwait(false))
        {
            if (await Task.WhenAny(ended, told.Task).ConfigureAwait(false) == ended)
            {
                return await ended.ConfigureAwait(false);
            }
        }

        bool isLost = !call.Stop.IsCancellationRequested;
        if (isLost)
        {
            call.Note($"The {what} is lost; the command is being ended.");
        }

        child.Ask();
        if (await Task.WhenAny(ended, Task.Delay(Grace, CancellationToken.None)).ConfigureAwait(false) != ended)
        {
            child.Kill();
        }

        await ended.ConfigureAwait(false);
        return isLost ? ExitCode.Refused : ExitCode.Interrupted;
    }
}
