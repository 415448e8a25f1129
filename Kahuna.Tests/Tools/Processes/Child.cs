using System.Diagnostics;
using Kahuna.Tests.Cluster;

namespace Kahuna.Tests.Tools.Processes;

/// <summary>
/// A program that a measurement has started, with its output in a file. Owned by its <see cref="Measurement"/>; not
/// thread-safe.
/// </summary>
internal sealed class Child : IDisposable
{
    private readonly string _log;
    private readonly Process _process;

    public Child(string log, string certificates, IEnumerable<string> command)
    {
        // The shell turns into the program, so the process number is the program's.
        ProcessStartInfo start = new("/bin/sh", ["-c", "exec \"$@\" >>\"$0\" 2>&1 </dev/null", log, .. command]);
        start.Environment.Remove("KAHUNA_TESTS_DLL");
        start.Environment["KAHUNA_DEV_CERT_DIR"] = certificates;
        _log = log;
        File.AppendAllText(log, "");
        _process = Process.Start(start)!;
        Id = _process.Id;
    }

    public int Id { get; }

    public bool HasExited => _process.HasExited;

    public int ExitCode => _process.ExitCode;

    /// <summary>Everything that the program has written, and the programs before it with the same file.</summary>
    public string Log => ReadShared(_log, 0);

    /// <summary>The last 20 lines of the log.</summary>
    public string LogEnd => string.Join('\n', Log.TrimEnd().Split('\n').TakeLast(20));

    public static string ReadShared(string path, long position)
    {
        using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        stream.Position = position;
        using StreamReader reader = new(stream);
        return reader.ReadToEnd();
    }

    /// <summary>Standard output of a program that must succeed.</summary>
    public static string Read(params string[] command) =>
        TryRead(command) ?? throw new MeasureException($"{string.Join(' ', command)} failed");

    /// <summary>Standard output of a program; null when its exit code is not 0.</summary>
    public static string? TryRead(params string[] command)
    {
        ProcessStartInfo start = new(command[0], command[1..])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        errors.Wait();
        return process.ExitCode == 0 ? output : null;
    }

    /// <summary>Sends a signal, unless the program has ended: its number may be another's by now.</summary>
    public void Send(int signal)
    {
        if (!_process.HasExited)
        {
            Signal.Send(Id, signal);
        }
    }

    public void Kill()
    {
        Send(Signal.Kill);
        _process.WaitForExit();
    }

    /// <summary>SIGTERM, and SIGKILL when the program has not ended in time.</summary>
    public void Stop(double seconds)
    {
        Send(Signal.Continue);
        Send(Signal.Terminate);
        if (!_process.WaitForExit(TimeSpan.FromSeconds(seconds)))
        {
            Kill();
        }
    }

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            Kill();
        }

        _process.Dispose();
    }
}
