using System.Diagnostics;
using System.Text;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// A command that runs as a process of its own, with its output kept. Owned by a test; killed with it.
/// </summary>
internal sealed class BenchProcess : IDisposable
{
    /// <summary>No command of these tests takes longer, on any machine.</summary>
    private static readonly TimeSpan s_limit = LastNet.Span;

    private readonly Process _process;
    private readonly StringBuilder _output = new();
    private readonly StringBuilder _error = new();

    public BenchProcess(ProcessStartInfo start)
    {
        start.RedirectStandardOutput = true;
        start.RedirectStandardError = true;
        start.RedirectStandardInput = true;
        start.StandardOutputEncoding = Encoding.UTF8;
        start.StandardErrorEncoding = Encoding.UTF8;
        _process = new Process { StartInfo = start };
        _process.OutputDataReceived += (_, line) => Append(_output, line.Data);
        _process.ErrorDataReceived += (_, line) => Append(_error, line.Data);
        _process.Start();
        _process.StandardInput.Close();
        _process.BeginOutputReadLine();
        _process.BeginErrorReadLine();
    }

    public int Id => _process.Id;

    public string Error => Read(_error);

    /// <summary>Starts the tool as it was built, with the arguments in <paramref name="line"/>.</summary>
    public static BenchProcess StartTool(string line) =>
        new(ShortLived.Prepare(new ProcessStartInfo("dotnet", Arguments(line))));

    /// <summary>
    /// The tool as a terminal starts it: a shell's background job, and all that it starts, may ignore SIGINT.
    /// </summary>
    public static BenchProcess StartToolInForeground(string line) =>
        new(ShortLived.Prepare(
            new ProcessStartInfo("env", ["--default-signal=INT", "dotnet", .. Arguments(line)])));

    public async Task<BenchOutcome> WaitAsync(TimeSpan? longest = null)
    {
        using CancellationTokenSource limit = new(longest ?? s_limit);
        try
        {
            await _process.WaitForExitAsync(limit.Token);
        }
        catch (OperationCanceledException)
        {
            throw new TimeoutException(
                $"{_process.StartInfo.FileName} {string.Join(' ', _process.StartInfo.ArgumentList)} did not end "
                    + $"within {longest ?? s_limit}.\nIts output so far: {Read(_output)}\nIts errors: {Error}");
        }

        return new BenchOutcome(_process.ExitCode, Read(_output), Read(_error));
    }

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            _process.Kill(entireProcessTree: true);
        }

        _process.Dispose();
    }

    private static string[] Arguments(string line) =>
        [
            Path.Combine(AppContext.BaseDirectory, "kahuna-bench.dll"),
            .. line.Split(' ', StringSplitOptions.RemoveEmptyEntries),
        ];

    private static void Append(StringBuilder target, string? line)
    {
        if (line is not null)
        {
            lock (target)
            {
                target.Append(line).Append('\n');
            }
        }
    }

    private static string Read(StringBuilder source)
    {
        lock (source)
        {
            return source.ToString();
        }
    }
}
