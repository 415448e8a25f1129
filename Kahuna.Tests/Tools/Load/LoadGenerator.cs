using System.Text.Json;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tidy;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Load;

/// <summary>One run of kahuna-bench. Owned by a measuring program; not thread-safe.</summary>
internal sealed class LoadGenerator : IDisposable
{
    private readonly Measurement _run;
    private readonly LoadPlan _plan;
    private readonly Child _process;

    public LoadGenerator(Measurement run, LoadPlan plan, params IEnumerable<string> inside)
    {
        (_run, _plan) = (run, plan);
        File.Delete(ReportFile);
        File.Delete(run.PathOf("bench.log"));
        string bench = Repository.FullPath("Kahuna.Benchmark/bin/Release/net10.0/kahuna-bench.dll");
        _process = run.Start("bench.log", [.. inside, "dotnet", bench, .. plan.Arguments, "--output", ReportFile]);
    }

    public int ProcessId => _process.Id;

    private string ReportFile => _run.PathOf("bench.json");

    /// <summary>A whole run.</summary>
    public static LoadReport Run(Measurement run, LoadPlan plan)
    {
        using LoadGenerator load = new(run, plan);
        return load.End();
    }

    public void AwaitMeasurement() => _run.WaitFor(60, "the load does not begin",
        () =>
            _process.HasExited
            ? throw Failure() : _process.Log.Contains("Running measurement", StringComparison.Ordinal), 0.02);

    /// <summary>Waits for the end.</summary>
    /// <param name="tick">Called every quarter of a second.</param>
    /// <param name="until">Called after <paramref name="tick"/>; true ends the load.</param>
    public LoadReport End(Action? tick = null, Func<bool>? until = null)
    {
        bool ended = false;
        for (; !_process.HasExited; _run.Sleep(0.25))
        {
            tick?.Invoke();
            if (!ended && until?.Invoke() == true)
            {
                _process.Send(Signal.Terminate);
                ended = true;
            }
        }

        if (!File.Exists(ReportFile) || (_plan.MustSucceed && !ended && _process.ExitCode != 0))
        {
            throw Failure();
        }

        return Read(ReportFile);
    }

    public static LoadReport Read(string file) =>
        JsonSerializer.Deserialize<LoadReport>(File.ReadAllText(file), JsonSerializerOptions.Web)!;

    public void Dispose()
    {
        if (!_process.HasExited)
        {
            _process.Kill();
        }
    }

    private MeasureException Failure() =>
        new($"kahuna-bench {string.Join(' ', _plan.Arguments)} failed:\n{_process.LogEnd}");
}
