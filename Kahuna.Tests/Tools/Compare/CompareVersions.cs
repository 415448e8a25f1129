using System.Diagnostics;
using Kahuna.Tests.Tidy;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// The measurement of scripts/compare.sh --against: this version of Kahuna and an earlier one in turn, driven by the
/// generator of this one. One thread.
/// </summary>
internal sealed class CompareVersions
{
    private const string Now = "now";
    private const string Before = "before";

    private readonly Measurement _run;
    private readonly string _before;
    private readonly int _seconds;
    private readonly int _warmup;
    private readonly VersionPoints _points = new();

    private CompareVersions(Measurement run, string before) =>
        (_run, _before, _seconds, _warmup) = (run, before, run.Options.Number("seconds"), run.Options.Number("warmup"));

    public static void Run(Measurement run)
    {
        string commit = Child.TryRead(
            "git", "-C", Repository.Root, "rev-parse", "--verify", "--quiet",
            run.Options.Text("against") + "^{commit}")?.Trim()
            ?? throw new MeasureException($"there is no commit {run.Options.Text("against")} in this clone");
        string before = run.PathOf("before");
        run.Say($"building {commit}");
        Directory.CreateDirectory(before);
        Child.Read("sh", "-c", "git -C \"$0\" archive \"$1\" | tar -x -C \"$2\"", Repository.Root, commit, before);
        Child build = run.Start(
            "build.log", "dotnet", "build", Path.Combine(before, "Kahuna.Server"), "-c", "Release", "--nologo",
            "-v", "q", "-p:RunAnalyzers=false");
        run.WaitFor(900, "the build is not done", () => build.HasExited);
        if (build.ExitCode != 0)
        {
            throw new MeasureException($"{commit} does not build:\n{build.LogEnd}");
        }

        CompareVersions command = new(run, Path.Combine(before, ServerPlace.ServerPath));
        int rounds = run.Options.Number("rounds");
        for (int round = 1; round <= rounds; round++)
        {
            foreach (string version in round % 2 == 1 ? (string[])[Now, Before] : [Before, Now])
            {
                run.Say($"round {round} of {rounds}: {version}");
                command.MeasureCluster(version);
                command.MeasureNode(version);
            }
        }

        VersionsReport report = VersionsReport.Of(Machine.Current(run.FileSystem), commit, command._points);
        report.Print(run.Output, rounds, command._seconds, command._warmup);
        ReportFile.Write(run.Options.Text("json"), report);
    }

    private string Server(string version) => version == Now ? Repository.FullPath(ServerPlace.ServerPath) : _before;

    private void MeasureCluster(string version)
    {
        ServerCluster cluster = new(_run, "cluster", Server(version));
        cluster.Up();

        // A fresh process compiles its code while it serves its first seconds; that is nobody's measurement.
        LoadGenerator.Run(_run, new LoadPlan(cluster.Endpoints, "mixed", 64, 2));
        foreach (string workload in (string[])["set", "get"])
        {
            foreach (int workers in (int[])[1, 64, 256])
            {
                MeasurePoint(version, cluster.Endpoints, workload, workers);
            }
        }

        cluster.Clean();
    }

    /// <summary>
    /// One node: how long it takes until it is ready, what memory it has then, a mixed load of ephemeral keys, and
    /// unary calls of a foreign client.
    /// </summary>
    private void MeasureNode(string version)
    {
        string url = $"https://127.0.0.1:{Cluster.ProcessCluster.FreePorts(1)[0]}";
        ServerNode node = new(_run, new ServerPlace(1, url, "standalone") { Server = Server(version) });
        Stopwatch began = Stopwatch.StartNew();
        node.Start();
        node.Await(60, "does not start", () => node.IsReady, 0.02);
        _points.Add(version, "node", 0, "readyMs", Math.Round(began.Elapsed.TotalMilliseconds));
        _run.Sleep(5);
        _points.Add(version, "node", 0, "memoryKb", node.Memory.Resident / 1024);
        LoadGenerator.Run(_run, new LoadPlan(url, "mixed", 64, 2) { More = ["--durability", "ephemeral"] });
        MeasurePoint(version, url, "mixed", 64, "--durability", "ephemeral");
        string report = _run.PathOf("unary.json");
        Child unary = _run.Start(
            "unary.log", "/usr/bin/python3", Repository.FullPath("scripts/compare_unary.py"),
            "--endpoint", new Uri(url).Authority, "--trusted", Path.Combine(_run.Certificates, "ca.pem"),
            "--callers", "64", "--seconds", $"{_seconds}", "--warmup", $"{_warmup}", "--output", report);
        _run.WaitFor(_seconds + _warmup + 60, "the unary calls are not done", () => unary.HasExited);
        if (unary.ExitCode != 0)
        {
            throw new MeasureException($"unary calls at version '{version}' fail:\n{unary.LogEnd}");
        }

        _points.Add(version, "unary", 64, LoadGenerator.Read(report).Aggregate);
        node.Stop();
        Directory.Delete(_run.PathOf("standalone"), recursive: true);
    }

    private void MeasurePoint(string version, string endpoints, string workload, int workers, params string[] more)
    {
        LoadPlan plan = new(endpoints, workload, workers, _seconds) { Warmup = _warmup, More = more };
        _points.Add(version, workload, workers, LoadGenerator.Run(_run, plan).Aggregate);
    }
}
