using System.Diagnostics;
using System.Runtime.InteropServices;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tidy;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// One run of a measuring program: its options, where it writes, a directory on the disk of the clone, and the
/// processes that it starts. These end and the directory goes at its end, also after a signal. Owned by
/// <see cref="MeasureCommand"/>; one thread, and another for signals.
/// </summary>
internal sealed class Measurement : IDisposable
{
    private readonly string _program;
    private readonly TextWriter _errors;
    private readonly Stopwatch _elapsed = Stopwatch.StartNew();
    private readonly List<Child> _children = [];
    private readonly Guardian _guardian = new();
    private readonly ManualResetEvent _ended = new(false);
    private readonly PosixSignalRegistration[] _signals;

    public Measurement(string program, MeasureOptions options, TextWriter output, TextWriter errors)
    {
        (_program, Options, Output, _errors) = (program, options, output, errors);
        Directory = System.IO.Directory.CreateDirectory(
            Path.Combine(Repository.Root, ".kahuna", $"{program}.{Environment.ProcessId}")).FullName;
        _signals = [Register(PosixSignal.SIGINT, 2), Register(PosixSignal.SIGTERM, 15)];
    }

    public MeasureOptions Options { get; }

    public TextWriter Output { get; }

    /// <summary>Where everything of this run lies.</summary>
    public string Directory { get; }

    /// <summary>Authority and certificates of the nodes.</summary>
    public string Certificates => Path.Combine(Directory, "certificates");

    /// <summary>Whether the directory stays, with the logs in it.</summary>
    public bool KeepsDirectory { get; set; }

    /// <summary>The signal that ended the run, or 0.</summary>
    public int EndedBy { get; private set; }

    public string FileSystem => Child.Read("stat", "-f", "-c", "%T", Directory).Trim();

    public string PathOf(string name) => Path.Combine(Directory, name);

    /// <summary>Writes a line to standard error, with the name of the script.</summary>
    public void Say(string text) => _errors.WriteLine($"{_program}.sh: {text}");

    public void SayTime() => Say($"took {_elapsed.Elapsed.TotalSeconds:F0} s");

    public void Note(string line) => _errors.WriteLine(line);

    /// <summary>Starts a program, with its output in a file of the directory.</summary>
    public Child Start(string log, params IEnumerable<string> command)
    {
        Child child = new(PathOf(log), Certificates, command);
        _children.Add(child);
        _guardian.Add(child.Id);
        return child;
    }

    /// <summary>Kills what runs and removes all files; the certificates stay.</summary>
    public void Clear()
    {
        KillChildren();
        List<string> entries = [.. System.IO.Directory.GetFileSystemEntries(Directory)];
        entries.Remove(Certificates);
        entries.ForEach(Remove);
    }

    public void Sleep(double seconds)
    {
        if (_ended.WaitOne(TimeSpan.FromSeconds(Math.Max(0, seconds))))
        {
            throw new OperationCanceledException();
        }
    }

    /// <summary>The first answer that is not null.</summary>
    public T Await<T>(double seconds, string what, Func<T?> condition, double pause = 0.1)
        where T : class
    {
        for (Stopwatch waited = Stopwatch.StartNew(); ; Sleep(pause))
        {
            if (condition() is { } found)
            {
                return found;
            }

            if (waited.Elapsed.TotalSeconds > seconds)
            {
                throw new MeasureException($"{what} after {seconds} s");
            }
        }
    }

    public void WaitFor(double seconds, string what, Func<bool> condition, double pause = 0.1) =>
        Await(seconds, what, () => condition() ? "" : null, pause);

    public void Dispose()
    {
        KillChildren();
        _guardian.Dispose();
        if (!KeepsDirectory)
        {
            Remove(Directory);
        }

        Array.ForEach(_signals, static signal => signal.Dispose());
        _ended.Dispose();
    }

    private static void Remove(string path)
    {
        if (File.Exists(path))
        {
            File.Delete(path);
        }
        else if (System.IO.Directory.Exists(path))
        {
            System.IO.Directory.Delete(path, recursive: true);
        }
    }

    private void KillChildren()
    {
        foreach (Child child in _children)
        {
            child.Dispose();
            _guardian.Remove(child.Id);
        }

        _children.Clear();
    }

    private PosixSignalRegistration Register(PosixSignal signal, int number) =>
        PosixSignalRegistration.Create(signal, context =>
    {
        context.Cancel = true;
        EndedBy = number;
        _ended.Set();
    });
}
