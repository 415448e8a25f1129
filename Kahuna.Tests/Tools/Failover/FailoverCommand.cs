using System.Text.RegularExpressions;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Failover;

/// <summary>
/// The measurement of scripts/failover.sh: a cluster in network namespaces, a caller, and a leader that fails. One
/// thread.
/// </summary>
internal sealed partial class FailoverCommand
{
    public const string Defaults = "--faults=kill,pause,peers,isolated --rounds=20 --durability=persistent --output=";

    private const int FaultSeconds = 6;

    /// <summary>
    /// Nobody takes over earlier than the shortest election timeout: a round with a shorter longest call has measured
    /// nothing.
    /// </summary>
    private const double FailedMinMs = 500;

    private readonly Measurement _run;
    private readonly Network _network;
    private readonly ServerCluster _cluster;
    private readonly string _durability;

    private FailoverCommand(Measurement run, Network network)
    {
        (_run, _network, _durability) = (run, network, run.Options.Text("durability"));
        ServerPlace[] places =
        [
            .. from node in Enumerable.Range(1, 3)
               select new ServerPlace(node, $"https://{Network.Address(node)}:8082", "nodes")
               {
                   Inside = network.Inside(node),
                   AskInside = network.InsideCaller,
               },
        ];
        _cluster = new ServerCluster(run, "nodes", places);
    }

    public static void Run(Measurement run)
    {
        using Network network = new();
        run.KeepsDirectory = true;
        FailoverReport report = new FailoverCommand(run, network).Measure();
        run.KeepsDirectory = false;
        report.Print(run.Output);
        ReportFile.Write(run.Options.Text("output"), report);
        if (report.Failed > 0)
        {
            throw new MeasureException($"{report.Failed} calls without success");
        }
    }

    private FailoverReport Measure()
    {
        _network.Make();
        _cluster.Up();
        Dictionary<string, List<double>> measured = new(StringComparer.Ordinal);
        long failed = 0;
        int rounds = _run.Options.Number("rounds");
        foreach (string fault in _run.Options.List("faults"))
        {
            List<double> calls = measured[fault] = [];
            for (int i = 1; i <= rounds; i++)
            {
                (double longest, long lost) = LongestCall(FaultKind.Of(fault));
                _cluster.AwaitReady();
                calls.Add(longest);
                failed += lost;
                _run.Say($"{fault} {i} of {rounds}: longest call {longest:F0} ms, {lost} without success");
            }
        }

        return new FailoverReport(_durability, measured, failed);
    }

    /// <summary>
    /// Longest call of a sequential caller in ms, and how many did not succeed, while the leader fails and for a while
    /// afterwards.
    /// </summary>
    private (double Longest, long Lost) LongestCall(FaultKind fault)
    {
        LoadPlan plan = new(_cluster.Endpoints, "mixed", 1, FaultSeconds + 4)
        {
            KeySpace = 100,
            More =
            [
                "--insecure", "--connections", "1", "--seed-keys", "100", "--timeout", "10",
                "--durability", _durability,
            ],
            MustSucceed = false,
        };
        using LoadGenerator caller = new(_run, plan, _network.InsideCaller);
        caller.AwaitMeasurement();
        _run.Sleep(1);
        ServerNode leader = _cluster.Leader(_durability == "ephemeral");
        long[] positions = [.. _cluster.Nodes.Select(static node => node.LogPosition)];
        Change(fault, leader, fails: true);
        _run.Sleep(FaultSeconds);
        Change(fault, leader, fails: false);
        LoadReport report = caller.End();
        double longest = report.Operations.Max(static row => row.MaxMs);
        if (longest < FailedMinMs)
        {
            throw new MeasureException(
                $"the longest call of {longest:F0} ms says that the fault '{fault.Name}' did not reach the leader, "
                + $"node {leader.Number}");
        }

        if (!FailoverReport.Worst.IsReached(longest))
        {
            SayLeadership(positions);
        }

        // Errors, timeouts, and calls without an answer at the end.
        return (longest, report.Operations.Sum(static row => row.Failed) + report.Generator.Backlog);
    }

    private void Change(FaultKind fault, ServerNode leader, bool fails)
    {
        if (fault == FaultKind.Kill && fails)
        {
            leader.Kill();
        }
        else if (fault == FaultKind.Kill)
        {
            leader.Start();
        }
        else if (fault == FaultKind.Pause)
        {
            leader.Send(fails ? Signal.Stop : Signal.Continue);
        }
        else if (fault == FaultKind.Peers)
        {
            _network.CutPeers(leader.Number, fails);
        }
        else
        {
            _network.CutAll(leader.Number, fails);
        }
    }

    /// <summary>What the nodes said of leadership since these positions in their logs.</summary>
    private void SayLeadership(long[] positions)
    {
        foreach ((ServerNode node, long position) in _cluster.Nodes.Zip(positions))
        {
            foreach (Match line in Leadership().Matches(node.LogSince(position)))
            {
                _run.Say($"node {node.Number}: {line.Value[..Math.Min(300, line.Length)]}");
            }
        }
    }

    [GeneratedRegex(@"\S.*( leads |No leader is known|majority).*")]
    private static partial Regex Leadership();
}
