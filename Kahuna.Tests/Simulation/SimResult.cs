using Kahuna.Server.State.Sessions;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation;

/// <summary>What one run did and showed. Immutable.</summary>
internal sealed record SimResult
{
    public required ulong Seed { get; init; }

    public required double VirtualSeconds { get; init; }

    public required double RealSeconds { get; init; }

    public required long Events { get; init; }

    public required ulong Hash { get; init; }

    public required int LeaderChanges { get; init; }

    public required int Crashes { get; init; }

    /// <summary>How often each class of faults happened.</summary>
    public required IReadOnlyDictionary<string, long> Faults { get; init; }

    /// <summary>Operations by outcome.</summary>
    public required IReadOnlyDictionary<string, long> Operations { get; init; }

    /// <summary>Keys whose histories were checked.</summary>
    public int Keys { get; init; }

    /// <summary>Keys whose histories were too much for the checker.</summary>
    public int Undecided { get; init; }

    public SimViolation? Violation { get; init; }

    public long Count(string fault) => Faults.GetValueOrDefault(fault);

    public static SimResult Of(SimCluster cluster, double realSeconds, SimViolation? violation)
    {
        Dictionary<string, long> faults = [];
        foreach (FaultClass kind in Enum.GetValues<FaultClass>())
        {
            faults[kind.ToString()] = cluster.Faults.Fired[(int)kind];
        }

        faults[nameof(FaultClass.Loss)] = cluster.Peers.Lost;
        faults[nameof(FaultClass.Duplication)] = cluster.Peers.Duplicated;
        faults[nameof(FaultClass.Reordering)] = cluster.Peers.Reordered;
        faults[nameof(FaultClass.SlowNetwork)] = cluster.Config.Classes.Contains(FaultClass.SlowNetwork) ? 1 : 0;
        IReadOnlyList<Call> calls = cluster.History.Calls;
        return new SimResult
        {
            Seed = cluster.Config.Seed,
            VirtualSeconds = cluster.Scheduler.NowNs / 1e9,
            RealSeconds = realSeconds,
            Events = cluster.Scheduler.Step,
            Hash = cluster.Log.Hash,
            LeaderChanges = cluster.Rules.LeaderChanges,
            Crashes = cluster.Faults.Crashes,
            Faults = faults,
            Operations = new Dictionary<string, long>
            {
                ["moments"] = cluster.Moments.LongCount(static moment => moment.Revisions.Count > 1),
                ["transactions"] = cluster.Lists.LongCount(static call => call.Outcome == HistoryOutcome.Ok),
                ["wideTransfers"] = cluster.WideBank.Transfers,
                ["wideScripts"] = cluster.WideBank.Scripts,
                ["wideFenced"] = cluster.WideFences.Committed,
                ["wideFencesLost"] = cluster.WideFences.Refused,
                ["holdCalls"] = cluster.Holds.Calls,
                ["holdsRefused"] = cluster.Holds.Refused,
                ["holdLongestMs"] = cluster.Holds.LongestMs,
                ["rightsChanged"] = cluster.Rights.Changed,
                ["userCalls"] = cluster.Rights.Allowed,
                ["userDenied"] = cluster.Rights.Denied,
                ["userTold"] = cluster.Rights.Told,
                ["afterTaking"] = cluster.Rights.AfterTaking,
                ["wideReads"] = cluster.WideBank.Reads,
                ["claims"] = cluster.RangeClaims.Claims,
                ["seals"] = cluster.RangeClaims.Seals,
                ["wideDecided"] = cluster.Rules.Transactions.Decided.All,
                ["wideAborted"] = cluster.Rules.Transactions.Decided.Aborted,
                ["wideSettled"] = cluster.Rules.Transactions.Settled,
                ["slotMoves"] = cluster.Mover?.Moves ?? 0,
                ["movedKeys"] = calls.LongCount(
                    call => call.Outcome == CallOutcome.Ok && cluster.Mover?.Concerns(call.Key) == true),
                ["ok"] = calls.LongCount(static call => call.Outcome == CallOutcome.Ok),
                ["fail"] = calls.LongCount(static call => call.Outcome == CallOutcome.Fail),
                ["unknown"] = calls.LongCount(static call => call.Outcome is CallOutcome.Unknown or CallOutcome.Open),
                ["repeats"] = Sessions(cluster).Sum(static figures => figures.Repeats),
                ["numbersRefused"] = cluster.Clients.NumbersRefused,
                ["numbersIdle"] = cluster.Clients.NumbersIdle,
                ["windowsFilled"] = cluster.Clients.WindowsFilled,
                ["forgottenSessions"] = Sessions(cluster).Sum(static figures => figures.Forgotten),
                ["sequences"] = calls.LongCount(
                    static call => call is { Kind: CallKind.Next, Outcome: CallOutcome.Ok }),
                ["locks"] = calls.LongCount(static call => call is { Kind: CallKind.Acquire, Outcome: CallOutcome.Ok }),
                ["unaryLocks"] = calls.LongCount(
                    static call => call is { Kind: CallKind.Acquire, Outcome: CallOutcome.Ok, IsUnary: true }),
                ["elections"] = calls.LongCount(static call =>
                    call is { Kind: CallKind.Acquire, Outcome: CallOutcome.Ok, Key: Candidate.Election }),
                ["readsWithData"] = calls.LongCount(
                    static call => call is { Kind: CallKind.Get, Outcome: CallOutcome.Ok, Done: true }),
                ["closedEpochs"] = cluster.Rules.ClosedEpochs,
                ["restored"] = cluster.Rules.Restored,
                ["ephemeral"] = calls.LongCount(static call => call is { IsEphemeral: true, Outcome: CallOutcome.Ok }),
                ["servedByMajority"] = cluster.Availability.Judged,
                ["prompt"] = cluster.Prompt.Judged,
                ["promptBesideHostile"] = cluster.Config.Hostile.Count > 0 ? cluster.Prompt.Judged : 0,
                ["waitingBytes"] = cluster.Prompt.WaitingBytesMax,
                ["evicted"] = cluster.Nodes.Where(static node => node.Loops is not null)
                    .Sum(node => Enumerable.Range(0, cluster.Config.Layout.Count).Sum(
                        slot => node.Loops!.Group(slot).State.Counts.Evicted)),
                ["memoryFull"] = calls.LongCount(static call => call.Error == nameof(KahunaErrorCode.MemoryFull)),
                ["changes"] = cluster.Rules.Changes.Count,
                ["changesTold"] = cluster.Followers.Sum(static follower => follower.Told),
                ["changesCompacted"] = cluster.Followers.Sum(static follower => follower.Compacted),
                ["changesAhead"] = cluster.Followers.Sum(static follower => follower.Ahead),
                ["epochsTold"] = cluster.Followers.Sum(static follower => follower.EpochsBegun),
                ["watched"] = cluster.Watchers.Sum(static watcher => watcher.Told),
                ["watchedTransactions"] = cluster.Watchers.Sum(static watcher => watcher.Transactions),
                ["watchesCompacted"] = cluster.Watchers.Sum(static watcher => watcher.Compacted),
                ["watchedEpochs"] = cluster.Watchers.Sum(static watcher => watcher.EpochsBegun),
                ["watchesJudged"] = cluster.Watchers.Sum(static watcher => watcher.Judged),
                ["watchStreams"] = cluster.Watchers.Sum(static watcher => watcher.Streams),
                ["sdkEvents"] = cluster.SdkWatches.Sum(static watch => watch.Events),
                ["sdkStates"] = cluster.SdkWatches.Sum(static watch => watch.States),
                ["sdkLagging"] = cluster.SdkWatches.Sum(static watch => watch.Breaks.Lagging),
                ["sdkCompacted"] = cluster.SdkWatches.Sum(static watch => watch.Breaks.Compacted),
                ["sdkEpochs"] = cluster.SdkWatches.Sum(static watch => watch.Breaks.Epochs),
                ["sdkTransactions"] = cluster.SdkWatches.Sum(static watch => watch.Keys.Transactions),
                ["restores"] = cluster.Log.Kinds[(int)SimEvent.Wipe],
            },
            Keys = cluster.CheckedKeys,
            Undecided = cluster.Undecided,
            Violation = violation,
        };
    }

    private static IEnumerable<SessionMetrics> Sessions(SimCluster cluster) => cluster.Nodes
        .Where(static node => node.Loops is not null)
        .SelectMany(node => Enumerable.Range(0, cluster.Config.Layout.Count).Select(
            slot => node.Loops!.Group(slot).State.Sessions.Metrics));
}

/// <summary>A rule that was broken: where, and what had happened before.</summary>
internal sealed record SimViolation(
    ulong Seed, long Step, string Rule, string Words, IReadOnlyList<string> Story, IReadOnlyList<string> Faults);
