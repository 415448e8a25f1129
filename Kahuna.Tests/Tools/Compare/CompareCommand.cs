using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// The measurement of scripts/compare.sh: Kahuna, etcd and Redis in turn, under the same load. Owned by the run; one
/// thread.
/// </summary>
internal sealed class CompareCommand
{
    public const string Defaults =
        "--rounds=3 --seconds=2 --warmup=1 --workers=1,64,256,1024 --workloads=set,get --only=kahuna,etcd,redis "
        + "--json= --against=";

    private const int BatchItems = 100;
    private const int Watches = 1_000;

    private readonly Measurement _run;
    private readonly ComparedSystems _systems;
    private readonly ComparedPoints _points = [];
    private readonly int[] _workers;
    private readonly string[] _workloads;
    private readonly int _seconds;
    private readonly int _warmup;
    private string _endpoints = "";
    private int _round;

    private CompareCommand(Measurement run)
    {
        (_run, _systems) = (run, new ComparedSystems(run));
        (_workers, _workloads) = (run.Options.Numbers("workers"), run.Options.List("workloads"));
        (_seconds, _warmup) = (run.Options.Number("seconds"), run.Options.Number("warmup"));
    }

    public static void Run(Measurement run)
    {
        if (run.Options.Text("against").Length > 0)
        {
            CompareVersions.Run(run);
            return;
        }

        CompareCommand command = new(run);
        command.MeasureAll();
        run.SayTime();
        CompareReport report =
            CompareReport.Of(Machine.Current(run.FileSystem), command._seconds, command._warmup, command._points);
        report.Print(run.Output);
        ReportFile.Write(run.Options.Text("json"), report);
    }

    private void MeasureAll()
    {
        string[] systems = _run.Options.List("only");
        _run.Note($"{"round",-6} {"system",-15} {"workload",-13} {"workers",8} {"req/s",12} {"p99 ms",10}");
        for (_round = 1; _round <= _run.Options.Number("rounds"); _round++)
        {
            for (int turn = 0; turn < systems.Length; turn++)
            {
                // Each round begins with another system, so that none always runs first on a cold machine.
                MeasureSystem(systems[(turn + _round - 1) % systems.Length]);
            }
        }
    }

    private void MeasureSystem(string system)
    {
        _endpoints = _systems.Start(system);

        // A fresh process compiles its code while it serves its first seconds; that is nobody's measurement.
        Load(system, "set", 64, 2);
        foreach (string workload in _workloads)
        {
            foreach (int workers in _workers)
            {
                MeasurePoint(system, workload, workers);
            }
        }

        if (system == "kahuna")
        {
            MeasureOthersOfKahuna();
            if (_workloads.Contains("transaction"))
            {
                MeasureTwoPartitions();
            }
        }

        _run.Clear();
    }

    private void MeasurePoint(string system, string workload, int workers)
    {
        if (workload == PointKey.Watch)
        {
            if (system == "kahuna")
            {
                MeasureWatches(workers);
            }

            return;
        }

        if (PointKey.IsOfApplications(workload))
        {
            MeasureApplication(system, workload, workers);
            return;
        }

        Measure(system, workload, workers);
        if (system == "kahuna")
        {
            Measure("kahuna_ephemeral", workload, workers);
            if (workload == "set")
            {
                MeasureCoordination(workers);
            }
        }
        else if (system == "redis" && workers > 1)
        {
            // With one worker there is nothing to share a connection with.
            Measure("redis_pipelined", workload, workers);
        }
    }

    /// <summary>By clients in this process: the load generator has no watches.</summary>
    private void MeasureWatches(int workers)
    {
        WatchFigures figures = WatchesCommand.CompareAsync(
            _run, _endpoints, new WatchLoad(workers, _seconds), Watches).GetAwaiter().GetResult();
        Add(PointKey.PacedSet, LatencyRow(figures.RoundTrips));
        Add(PointKey.Watch, LatencyRow(figures.Late));
        Add(PointKey.Unwatched, RateRow(figures.Alone));
        Add(PointKey.Watched, RateRow(figures.Beside));

        void Add(string workload, LoadRow row)
        {
            _points.Add(new PointKey(workload, workers, "kahuna"), row);
            Note("kahuna", workload, workers, row);
        }
    }

    private LoadRow LatencyRow(IReadOnlyList<double> milliseconds)
    {
        double[] sorted = [.. milliseconds.Order()];
        return new LoadRow(
            (double)sorted.Length / _seconds, At(0.5), At(0.99), At(0.999), At(1), sorted.Length, 0, 0, 0);

        double At(double part) => sorted.Length == 0 ? 0 : sorted[(int)(part * (sorted.Length - 1))];
    }

    private static LoadRow RateRow(double rate) => new(rate, 0, 0, 0, 0, 0, 0, 0, 0);

    /// <summary>Peers are measured only where they have the like.</summary>
    private void MeasureApplication(string system, string workload, int workers)
    {
        bool isPeer = (system, workload) is ("etcd", "transaction") or ("redis", "script");
        if (system == "kahuna" || isPeer)
        {
            Measure(system, workload, workers);
        }

        if ((system, workload) is ("kahuna", "transaction"))
        {
            Measure(system, "interactive", workers);
        }
    }

    /// <summary>
    /// What is judged by a set of the same number of workers, right after it, because machines change their speed.
    /// </summary>
    private void MeasureCoordination(int workers)
    {
        Measure("kahuna", "sequence", workers);
        Measure("kahuna", "lock", workers);
        Measure("kahuna_ephemeral", "lock", workers);
    }

    /// <summary>A cluster of its own: on a small machine the usual one has a single partition.</summary>
    private void MeasureTwoPartitions()
    {
        const string System = "kahuna_split";
        _run.Clear();
        _endpoints = _systems.Start(System);
        Load(System, "set", 64, 2);
        foreach (int workers in _workers)
        {
            Measure(System, "set", workers);
            Measure(System, PointKey.OfTwoPartitions, workers);
        }
    }

    private void MeasureOthersOfKahuna()
    {
        if (Array.TrueForAll(_workloads, PointKey.IsOfApplications))
        {
            return;
        }

        if (!_workloads.Contains("set"))
        {
            Array.ForEach(_workers, MeasureCoordination);
        }

        Measure("kahuna", "handover", 1000);
        Measure("kahuna", "set", 1);
        _run.Clear();
        _endpoints = _systems.Start("kahuna_standalone");
        Load("kahuna_standalone", "mixed", 64, 2);
        Measure("kahuna_standalone", "mixed", 64);
    }

    private void Measure(string system, string workload, int workers)
    {
        LoadRow row = Load(system, workload, workers, _seconds);

        // A batch is compared by its sets.
        row = workload == "batch" ? row with { Rps = row.Rps * BatchItems } : row;
        _points.Add(new PointKey(workload, workers, system), row);
        Note(system, workload, workers, row);
    }

    private void Note(string system, string workload, int workers, LoadRow row)
    {
        long faults = ComparePoint.FaultsOf(row, workload);
        string note = faults > 0 ? $"  {faults} errors, timeouts or misses" : "";
        _run.Note($"{_round,-6} {system,-15} {workload,-13} {workers,8} {row.Rps,12:N0} {row.P99Ms,10:N2}{note}");
    }

    private LoadRow Load(string system, string workload, int workers, int seconds) =>
        LoadGenerator.Run(_run, new LoadPlan(_endpoints, workload.Split('_')[0], workers, seconds)
        {
            Warmup = _warmup,
            More =
        [
            "--target", system.Split('_')[0],
            .. workload switch
            {
                "batch" => (string[])["--items", $"{BatchItems}"],
                PointKey.OfTwoPartitions => ["--partitions", "2"],
                _ => [],
            },
            .. system switch
            {
                "redis" => (string[])["--connections", $"{workers}"],
                "kahuna_ephemeral" or "kahuna_standalone" => ["--durability", "ephemeral"],
                _ => [],
            },
        ],
        }).Aggregate;
}
