using System.ComponentModel;
using System.Diagnostics;
using System.Runtime.InteropServices;
using Kahuna.Cli.Errors;

namespace Kahuna.Cli.Commands.Running;

/// <summary>
/// A command that runs below this one, with its streams and its environment. Owned by the command that started it.
/// </summary>
internal sealed partial class ChildProcess : IDisposable
{
    private const int SigTerm = 15;

    /// <summary>ENOENT, and ERROR_FILE_NOT_FOUND of Windows.</summary>
    private const int NoEntry = 2;

    private readonly Process _process;

    private ChildProcess(Process process) => _process = process;

    /// <summary>Starts a command.</summary>
    /// <param name="words">The program and its arguments; no shell reads them.</param>
    /// <param name="variables">What its environment has besides that of this process.</param>
    /// <exception cref="CliException">It cannot be started.</exception>
    public static ChildProcess Start(string[] words, IEnumerable<KeyValuePair<string, string>> variables)
    {
        ProcessStartInfo start = new(words[0], words[1..]) { UseShellExecute = false };
        foreach ((string name, string value) in variables)
        {
            start.Environment[name] = value;
        }

        try
        {
            return new ChildProcess(Process.Start(start)!);
        }
        catch (Win32Exception failure) when (failure.NativeErrorCode == NoEntry)
        {
            throw new CliException($"There is no program '{words[0]}'.");
        }
        catch (Exception failure) when (failure is Win32Exception or InvalidOperationException)
        {
            throw new CliException($"The command '{words[0]}' cannot be started: {failure.Message}.");
        }
    }

    /// <summary>Waits for its end; the exit code, with 128 and the signal when a signal has ended it.</summary>
    public async Task<int> WaitAsync()
    {
        await _process.WaitForExitAsync().ConfigureAwait(false);
        return _process.ExitCode;
    }

    /// <summary>Asks it to end: SIGTERM. On Windows it is ended.</summary>
    public void Ask()
    {
        if (OperatingSystem.IsWindows())
        {
            Kill();
            return;
        }

        if (!_process.HasExited)
        {
            _ = Signal(_process.Id, SigTerm);
        }
    }

    /// <summary>Ends it and what it has started.</summary>
    public void Kill()
    {
        try
        {
            _process.Kill(entireProcessTree: true);
        }
        catch (Exception failure) when (failure is InvalidOperationException or Win32Exception)
        {
            // It has ended meanwhile.
        }
    }

    /// <inheritdoc/>
    public void Dispose() => _process.Dispose();

    [LibraryImport("libc", EntryPoint = "kill")]
    private static partial int Signal(int process, int signal);
}
