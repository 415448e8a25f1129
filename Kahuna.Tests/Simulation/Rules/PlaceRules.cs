using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// A claim keeps its place in the queue of its lock: until its wait is over, no leader gives it up that has not led for
/// as long as a caller may be silent, or that has told the caller of its place in that time. Of persistent locks, whose
/// sweeps are in the log. Owned by one run.
/// </summary>
internal sealed class PlaceRules(SimConfig config, Action<string, string> breaks)
{
    private const string Rule = "a claim keeps its place";

    /// <summary>A leader's code counts from the begin of its turn, and this from its end.</summary>
    private const long SlackMs = 20;

    private readonly Dictionary<(int Node, int Slot), Leadership> _leaders = [];

    public void Ended(SimNode node)
    {
        for (int slot = 0; slot < config.Layout.Count; slot++)
        {
            _leaders.Remove((node.Id, slot));
        }
    }

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, int slot, Group partition)
    {
        RaftCore core = partition.Core;
        if (core.Role == RaftRole.Leader
            && (!_leaders.TryGetValue((node.Id, slot), out Leadership? known) || known.Term != core.Term))
        {
            _leaders[(node.Id, slot)] = new Leadership(core.Term, Now(node));
        }
    }

    /// <summary>A node tells a caller that its claim still waits.</summary>
    public void Told(SimNode node, int slot, long token)
    {
        if (_leaders.TryGetValue((node.Id, slot), out Leadership? leadership))
        {
            leadership.Told[token] = Now(node);
        }
    }

    /// <summary>A node hands commands of one entry to its log.</summary>
    public void Appended(SimNode node, int slot, Term term, ReadOnlySpan<byte> payload)
    {
        if (node.Loops?.Group(slot) is not { } partition
            || partition.Core.Role != RaftRole.Leader
            || partition.Core.Term != term
            || !CommandEntry.TryReadHeader(payload, out ClusterTime time, out _, out ReadOnlySpan<byte> items))
        {
            return;
        }

        while (CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes))
        {
            if ((CommandKind)bytes[0] == CommandKind.LockSweep
                && Command.TryRead(bytes, out Command sweep)
                && sweep.Value.Length > 0)
            {
                Check(node, slot, partition, sweep.Value, time);
            }
        }
    }

    private void Check(SimNode node, int slot, Group partition, ReadOnlySpan<byte> decisions, ClusterTime time)
    {
        // A decision about a claim that is gone, or that was asked for again since, changes nothing.
        List<Row> due = [];
        partition.State.Locks.CollectDueWaiters(time, int.MaxValue, due);
        for (; decisions.Length >= WaiterDecision.Bytes; decisions = decisions[WaiterDecision.Bytes..])
        {
            WaiterDecision decision = WaiterDecision.Read(decisions);
            (FencingToken token, ClusterTime waitEnd) = due.Contains(decision.Row)
                ? partition.State.Locks.Waiter(decision.Row)
                : default;
            if (decision.AgainMs != 0 || token != decision.Token || waitEnd <= time)
            {
                continue;
            }

            NodeTime now = Now(node);
            if (!_leaders.TryGetValue((node.Id, slot), out Leadership? leadership)
                || leadership.Term != partition.Core.Term
                || now - leadership.Since < config.WaiterCheckMs - SlackMs)
            {
                breaks(
                    Rule,
                    $"node {node.Id} gives claim {token} of group {slot} up, and leads for "
                        + $"{now - (leadership?.Since ?? now)} of {config.WaiterCheckMs} ms");
            }
            else if (leadership.Told.TryGetValue(token.Value, out NodeTime told)
                && now - told < config.WaiterCheckMs - SlackMs)
            {
                breaks(
                    Rule,
                    $"node {node.Id} gives claim {token} of group {slot} up, whose caller it has answered "
                        + $"{now - told} of {config.WaiterCheckMs} ms ago");
            }
        }
    }

    private static NodeTime Now(SimNode node) => new(node.Clock.GetTimestamp() / 1_000_000);

    /// <summary>What is known of one leader in one term, by its own clock.</summary>
    private sealed record Leadership(Term Term, NodeTime Since)
    {
        public Dictionary<long, NodeTime> Told { get; } = [];
    }
}
