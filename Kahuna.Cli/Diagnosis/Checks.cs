using System.Globalization;
using System.Net;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Diagnosis;

/// <summary>
/// The checks of the doctor, each from what is known to findings. They compute only. Static, any thread.
/// </summary>
internal static class Checks
{
    private static readonly TimeSpan s_clockWarning = TimeSpan.FromSeconds(2);

    /// <summary>JSON Web Tokens and certificates are refused from about here on.</summary>
    private static readonly TimeSpan s_clockProblem = TimeSpan.FromSeconds(30);

    private static readonly TimeSpan s_certificateWarning = TimeSpan.FromDays(14);

    /// <summary>All checks, in the order in which a person would look.</summary>
    public static IEnumerable<Finding> All(Examination known) =>
    [
        .. Reachable(known), .. Identity(known), .. Versions(known), .. Ready(known), .. Leaders(known),
        .. Stopped(known), .. Disks(known), .. Replicas(known), .. Used(known), .. Certificates(known),
        .. Clocks(known), .. Authentication(known),
    ];

    public static IEnumerable<Finding> Reachable(Examination known) => known.Reports.Select(static report =>
        report.Problem is null ? Good("reachable", report.Endpoint.Authority, "answers")
            : report.IsRefused ? new Finding(
                "reachable", Severity.Problem, report.Endpoint.Authority,
                $"answers, but {report.Problem}: it is not checked",
                "Sign in as a user with the role admin to have this node checked.")
            : new Finding(
                "reachable", Severity.Problem, report.Endpoint.Authority, report.Problem,
                "Start the node, or look at its log, the network and --trusted-ca."));

    public static IEnumerable<Finding> Identity(Examination known) => Same(
        "identity", known, static status => status.ClusterId, Severity.Problem,
        "The nodes belong to different clusters; correct -c or the nodes' --peers.");

    public static IEnumerable<Finding> Versions(Examination known) =>
    [
        .. Same(
            "version", known, static status => status.Version, Severity.Warning,
            "Finish the rolling upgrade."),
        .. Same(
            "feature level", known,
            static status => status.FeatureLevel?.ToString(CultureInfo.InvariantCulture) ?? "unknown", Severity.Warning,
            "It settles within a second; otherwise a node does not follow the cluster."),
    ];

    public static IEnumerable<Finding> Ready(Examination known) => known.Known.Select(static node =>
        node.Status.IsReady
            ? Good("ready", node.Node, "serves requests")
            : new Finding(
                "ready", Severity.Problem, node.Node, $"is not ready: {node.Status.Reason}",
                "Wait if it was just started; otherwise look at its log."));

    public static IEnumerable<Finding> Leaders(Examination known) => known.Known
        .SelectMany(static node => node.Status.Groups)
        .GroupBy(static group => (group.IsEphemeral, group.Partition, group.Name))
        .OrderBy(static group => (group.Key.IsEphemeral, group.Key.Partition))
        .Select(static group => group.Any(static node => node.Leader != 0)
            ? Good("leader", group.Key.Name, $"is led by node {group.MaxBy(static node => node.Term)!.Leader}")
            : new Finding(
                "leader", Severity.Problem, group.Key.Name, "has no leader",
                "A majority of the nodes must run and reach each other."));

    public static IEnumerable<Finding> Stopped(Examination known) =>
        from node in known.Known
        from @group in node.Status.Groups
        where @group.Stopped is not null
        select new Finding(
            "stopped", Severity.Problem, node.Node, $"{@group.Name} has stopped: {@group.Stopped}",
            "Keep its data directory, and follow docs/operations.md (Rebuilding a node).");

    public static IEnumerable<Finding> Disks(Examination known) => known.Known.Select(static node =>
        node.Status.Groups.FirstOrDefault(static group => group.IsStalled) is { } stalled
            ? new Finding(
                "disk", Severity.Problem, node.Node, $"the log of {stalled.Name} waits for the disk",
                "Look at the disk of the data directory: its errors, its load, its space.")
            : Good("disk", node.Node, "no write waits for it"));

    /// <summary>Nodes that applied the same entries have the same state.</summary>
    public static IEnumerable<Finding> Replicas(Examination known) => known.Known
        .SelectMany(static node => node.Status.Groups)
        .Where(static group => !group.IsEphemeral)
        .GroupBy(static group => (group.Partition, group.Name, group.AppliedIndex))
        .Where(static group => group.Select(static node => node.Digest).Distinct().Count() > 1)
        .Select(static group => new Finding(
            "replicas", Severity.Problem, group.Key.Name, $"nodes differ at entry {group.Key.AppliedIndex}",
            "Stop writing, keep all data directories, and report it."));

    public static IEnumerable<Finding> Used(Examination known) => known.Known.SelectMany(static node => new[]
    {
        Used(
            node.Node, "persistent data", node.Status.PersistentBytes, node.Status.PersistentLimit,
            "--persistent-limit"),
        Used(
            node.Node, "ephemeral data", node.Status.EphemeralBytes, node.Status.EphemeralLimit, "--ephemeral-limit"),
        Used(node.Node, "the log", node.Status.LogBytes, node.Status.LogLimit, "--log-limit"),
    }).OfType<Finding>();

    public static IEnumerable<Finding> Certificates(Examination known)
    {
        foreach ((string node, NodeStatus status) in known.Known)
        {
            if (status.CertificateLeft is { } left)
            {
                yield return left > s_certificateWarning
                    ? Good("certificate", node, $"is valid for {SpanText.Text(left)}")
                    : new Finding(
                        "certificate", left > TimeSpan.Zero ? Severity.Warning : Severity.Problem, node,
                        left > TimeSpan.Zero ? $"expires in {SpanText.Text(left)}" : "has expired",
                        "Replace its files; the node reads them again without a restart.");
            }
        }
    }

    public static IEnumerable<Finding> Clocks(Examination known)
    {
        foreach (NodeReport report in known.Reports)
        {
            if (report.ClockAhead is { } ahead)
            {
                TimeSpan off = ahead.Duration();
                string where = ahead > TimeSpan.Zero ? "ahead of" : "behind";
                yield return off < s_clockWarning
                    ? Good("clock", report.Endpoint.Authority, "agrees with this machine")
                    : new Finding(
                        "clock", off < s_clockProblem ? Severity.Warning : Severity.Problem, report.Endpoint.Authority,
                        $"is {SpanText.Text(off)} {where} this machine",
                        "Synchronise the clocks, on the node or here.");
            }
        }
    }

    public static IEnumerable<Finding> Authentication(Examination known)
    {
        Uri? open = known.Reports.Select(static report => report.Endpoint)
            .FirstOrDefault(static node => !IsLoopback(node));
        if (known.SignIn is not null)
        {
            yield return known.SignIn != "none"
                ? Good("authentication", "cluster", $"required; signed in by {known.SignIn}")
                : open is null ? Good("authentication", "cluster", "none, and all nodes are on this machine")
                : new Finding(
                    "authentication", Severity.Problem, "cluster",
                    $"none, and {open.Authority} can be reached from elsewhere",
                    "Start the nodes with --auth required (docs/security.md).");
        }
    }

    private static IEnumerable<Finding> Same(
        string check, Examination known, Func<NodeStatus, string> value, Severity severity, string advice)
    {
        (string Node, string Value)[] values = [.. known.Known.Select(node => (node.Node, value(node.Status)))];
        if (values.Length > 0)
        {
            yield return values.Select(static node => node.Value).Distinct().Count() == 1
                ? Good(check, "cluster", $"{values[0].Value} on all nodes that answer")
                : new Finding(
                    check, severity, "cluster",
                    string.Join(", ", values.Select(static node => $"{node.Node} has {node.Value}")), advice);
        }
    }

    private static Finding? Used(string node, string what, long? used, long? limit, string option)
    {
        if (used is not { } bytes || limit is not ({ } most and > 0))
        {
            return null;
        }

        double share = (double)bytes / most;
        string text = string.Create(CultureInfo.InvariantCulture, $"{what} takes {share:P0} of {option}");
        return share < 0.8
            ? Good("limits", node, text)
            : new Finding(
                "limits", share < 0.95 ? Severity.Warning : Severity.Problem, node, text,
                $"Delete data or raise {option}; at the limit writes are refused.");
    }

    private static Finding Good(string check, string subject, string text) => new(check, Severity.Ok, subject, text);

    private static bool IsLoopback(Uri endpoint) =>
        endpoint.IsLoopback
            || (IPAddress.TryParse(endpoint.IdnHost, out IPAddress? address) && IPAddress.IsLoopback(address));
}
