using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What each user was allowed and when, as far as who asked for the changes knows it, and what follows from that for
/// the calls of users. Owned by one run.
/// </summary>
internal sealed class RightsHistory(SimCluster cluster)
{
    /// <summary>A change of rights holds on every node after this.</summary>
    private const long EverywhereNs = 1_000_000_000;

    /// <summary>A message between nodes that takes longer makes no promise about rights.</summary>
    public const long LateNs = 200_000_000;

    private readonly Dictionary<SimUser, List<RightsChange>> _changes =
        SimUser.All.ToDictionary(static user => user, static _ => new List<RightsChange> { new(RightsChange.None, 0) });

    /// <summary>Changes that were acknowledged.</summary>
    public long Changed { get; private set; }

    /// <summary>Calls that were carried out, and had to be allowed.</summary>
    public long Allowed { get; private set; }

    /// <summary>Calls that were refused for want of a right.</summary>
    public long Denied { get; private set; }

    /// <summary>Calls that ended after a right was taken for certain.</summary>
    public long AfterTaking { get; private set; }

    /// <summary>A change is being asked for.</summary>
    public RightsChange Begin(SimUser user, UserRights rights)
    {
        RightsChange change = new(rights, cluster.Scheduler.NowNs);
        _changes[user].Add(change);
        return change;
    }

    /// <summary>A change was acknowledged by a node.</summary>
    public void Acknowledged(RightsChange change, SimNode node)
    {
        (change.AckedNs, change.Node, change.Life) = (cluster.Scheduler.NowNs, node.Id, node.Life);
        change.Version = node.Access!.Ledger!.Book.Version;
        Changed++;
    }

    /// <summary>Judges a call of a user that has ended.</summary>
    /// <param name="user">Who made it.</param>
    /// <param name="needed">What it needs.</param>
    /// <param name="key">On which key.</param>
    /// <param name="sentNs">When it was sent; for a transaction, when its commit was.</param>
    /// <param name="node">The node that it was made at; null: not known.</param>
    /// <param name="end">How it ended.</param>
    /// <param name="words">What it was told.</param>
    public void Judge(
        SimUser user, Permissions needed, string key, long sentNs, int? node, RightsEnd end, string? words = null)
    {
        if (end == RightsEnd.Other || HeardLate(sentNs))
        {
            return;
        }

        IReadOnlyList<RightsChange> held = Held(user, sentNs, node);
        bool isEnabled = end == RightsEnd.Unauthenticated;
        int allowing = held.Count(change => change.Rights.Allows(needed, key, user));
        Allowed += end == RightsEnd.Done ? 1 : 0;
        Denied += end != RightsEnd.Done ? 1 : 0;
        AfterTaking += allowing == 0 ? 1 : 0;
        if (end == RightsEnd.Done && allowing == 0)
        {
            cluster.Rules.Break(
                "what was taken from a user is refused after a second",
                $"{user.Name} needed {needed} on {key}, sent at {sentNs / 1_000_000} ms to "
                    + $"{(node is { } at ? $"node {at}" : "some node")}, and it was done; its rights: {Words(held)}");
        }

        if (end != RightsEnd.Done
            && held.All(change => isEnabled ? change.Rights.IsEnabled : change.Rights.Allows(needed, key, user)))
        {
            cluster.Rules.Break(
                "what a user has is granted after a second",
                $"{user.Name} has {needed} on {key}, sent at {sentNs / 1_000_000} ms, and was refused as {end} "
                    + $"({words}); its rights: {Words(held)}");
        }
    }

    /// <summary>Changes that watches of users told.</summary>
    public long Told { get; private set; }

    /// <summary>Judges what a watch of a user told: a change that was asked for at this time.</summary>
    public void JudgeTold(SimUser user, string key, long askedNs)
    {
        Told++;
        if (HeardLate(askedNs))
        {
            return;
        }

        IReadOnlyList<RightsChange> held = Held(user, askedNs, null);
        if (!held.Any(change => change.Rights.Allows(Permissions.Read | Permissions.Watch, key, user)))
        {
            cluster.Rules.Break(
                "a watch ends with its right",
                $"a watch of {user.Name} told of {key}, which was written at {askedNs / 1_000_000} ms or later; its "
                    + $"rights: {Words(held)}");
        }
    }

    /// <summary>What the user's rights may have been, anywhere and at any time from then until now.</summary>
    private List<RightsChange> Held(SimUser user, long sentNs, int? node)
    {
        // Clocks of nodes may be slow: those of a leader that is no more and of who follows it.
        long everywhereNs = cluster.Config.Classes.Contains(FaultClass.ClockDrift)
            ? (long)(EverywhereNs * Nemesis.RateMax * Nemesis.RateMax)
            : EverywhereNs;
        List<RightsChange> all = _changes[user];
        int first = all.FindLastIndex(change => change.AckedNs is { } acked
            && acked <= (IsOf(change, node) ? sentNs : sentNs - everywhereNs));
        return all[first..];
    }

    /// <summary>The node has made the change itself, and has lived on: it obeys it at once.</summary>
    private bool IsOf(RightsChange change, int? node) =>
        change.Node == node && cluster.Nodes[change.Node - 1].Life == change.Life;

    private bool HeardLate(long sinceNs) =>
        cluster.Nodes.Any(node => node.HeardLateNs > sinceNs - (2 * EverywhereNs));

    private string Words(IReadOnlyList<RightsChange> held) => string.Join("; ", held.Select(
        static change => $"{change.Rights} asked for at {change.BegunNs / 1_000_000} ms, "
            + (change.AckedNs is { } acked
                ? $"acknowledged by node {change.Node} at {acked / 1_000_000} ms as version {change.Version}"
                : "not acknowledged")))
        + "; nodes now: "
        + string.Join("; ", cluster.Nodes.Select(static node => $"node {node.Id} {node.Access?.Standing ?? "down"}"));
}

/// <summary>How a call of a user ended.</summary>
internal enum RightsEnd
{
    /// <summary>In a way that says nothing about rights.</summary>
    Other,

    /// <summary>It was carried out.</summary>
    Done,

    /// <summary>It was refused for want of a right.</summary>
    PermissionDenied,

    /// <summary>It was refused because the user may not sign in.</summary>
    Unauthenticated,
}

/// <summary>What a user may do: some permissions on keys that begin with its name and some more. Immutable.</summary>
/// <param name="Permissions">What it may do.</param>
/// <param name="Prefix">What its keys begin with, behind its name and a '/'.</param>
/// <param name="IsEnabled">It may sign in.</param>
internal sealed record UserRights(Permissions Permissions, string Prefix, bool IsEnabled)
{
    /// <summary>True when all these permissions are there on a key.</summary>
    public bool Allows(Permissions needed, string key, SimUser user) =>
        IsEnabled
        && (Permissions & needed) == needed
        && key.StartsWith($"{user.Name}/{Prefix}", StringComparison.Ordinal);
}

/// <summary>A change of a user's rights. Owned by the run.</summary>
internal sealed class RightsChange(UserRights rights, long begunNs)
{
    /// <summary>Before the first change.</summary>
    public static UserRights None { get; } = new(default, "", false);

    public UserRights Rights => rights;

    public long BegunNs => begunNs;

    /// <summary>When it was acknowledged; null: it was not, or not yet.</summary>
    public long? AckedNs { get; set; } = begunNs == 0 ? long.MinValue : null;

    /// <summary>Who acknowledged it.</summary>
    public int Node { get; set; }

    /// <summary>The version of the records with it.</summary>
    public ulong Version { get; set; }

    /// <inheritdoc cref="SimNode.Life"/>
    public int Life { get; set; }
}
