using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// What the nodes of one group believe of disks and terms is so. A wrong belief breaks a promise of
/// <see cref="GroupRules"/> only when more goes wrong at the same time, so it is looked for by itself. Owned by one
/// run.
/// </summary>
internal sealed class BeliefRules(int group, IReadOnlyList<SimNode> nodes, Action<string, string> breaks)
{
    /// <summary>
    /// So many messages of a later term, each with a turn before the next, may be dropped because too much waits.
    /// </summary>
    private const int DroppedMax = 4;

    private readonly Believer[] _believers =
        [.. Enumerable.Range(0, nodes.Count + 1).Select(_ => new Believer(nodes.Count))];

    /// <summary>A node's process has ended.</summary>
    public void Ended(SimNode node) => _believers[node.Id] = new Believer(nodes.Count);

    /// <summary>
    /// A message is about to be handed to a node, which has run so many turns. Kinds that may be answered without
    /// entering their term do not count.
    /// </summary>
    public void Hears(SimNode node, in RaftMessage message, RaftCore core, long turns)
    {
        if (message.Term <= core.Term
            || message.Kind
                is not (
                    RaftMessageKind.Append
                        or RaftMessageKind.AppendReply
                        or RaftMessageKind.Heartbeat
                        or RaftMessageKind.HeartbeatReply))
        {
            return;
        }

        Believer believer = _believers[node.Id];
        if (core.Term != believer.HeardIn)
        {
            believer.HeardIn = core.Term;
            believer.Heard = 0;
        }

        if (turns != believer.HeardAtTurn && ++believer.Heard > DroppedMax)
        {
            breaks(
                "who hears of a later term enters it",
                $"node {node.Id} is {core.Role} in term {core.Term}, and has heard of a later one {believer.Heard} "
                    + $"times, of {message.Term} at last");
        }

        believer.HeardAtTurn = turns;
    }

    /// <summary>After code of a node has run; no turn of it is under way.</summary>
    public void Look(SimNode node, RaftCore core)
    {
        GroupImage memory = node.Witness.Memory(group);
        ulong synced = core.DurableIndex.Value;
        if (synced > memory.Start
            && (synced > memory.Last || !node.Witness.Durable(group).Holds(synced, memory[synced])))
        {
            breaks(
                "what counts as synced is on the disk",
                $"node {node.Id} counts its log as synced up to entry {synced}; the log ends at {memory.Last}, and on "
                    + $"the disk at {node.Witness.Durable(group).Last}");
        }

        if (core.Role == RaftRole.Leader)
        {
            LookAtFollowers(node, core);
        }
        else if (memory.Version != _believers[node.Id].Version)
        {
            _believers[node.Id].Version = memory.Version;
            LookAtLeader(node, core);
        }
    }

    private void LookAtFollowers(SimNode leader, RaftCore core)
    {
        Believer believer = _believers[leader.Id];
        if (believer.LeadsIn != core.Term.Value)
        {
            believer.Lead(core.Term.Value, nodes);
        }

        foreach (SimNode follower in nodes)
        {
            if (follower != leader
                && core.MatchIndex(new NodeId((ushort)follower.Id)).Value is var match
                && match != believer.Matches[follower.Id])
            {
                believer.Matches[follower.Id] = match;
                CheckMatch(leader, core, follower, match);
            }
        }
    }

    private void LookAtLeader(SimNode follower, RaftCore core)
    {
        foreach (SimNode leader in nodes)
        {
            if (leader.Loops?.Group(group).Core is { Role: RaftRole.Leader } leading && leading.Term == core.Term)
            {
                CheckMatch(leader, leading, follower, leading.MatchIndex(new NodeId((ushort)follower.Id)).Value);
            }
        }
    }

    /// <summary>
    /// What a leader takes for synced on a follower, which has not entered a later term since, is there. A lost
    /// directory is another matter.
    /// </summary>
    private void CheckMatch(SimNode leader, RaftCore core, SimNode follower, ulong match)
    {
        GroupImage memory = leader.Witness.Memory(group);
        GroupImage written = follower.Witness.Memory(group);
        if (match <= memory.Start
            || written.HardState.Term > core.Term
            || follower.IsRejoining
            || follower.Directory != _believers[leader.Id].Directories[follower.Id])
        {
            return;
        }

        if (match > memory.Last
            || !written.Holds(match, memory[match])
            || !follower.Witness.Durable(group).Holds(match, memory[match]))
        {
            breaks(
                "a leader counts what its followers have",
                $"node {leader.Id}, leader in term {core.Term} with {memory.Last} entries, counts {match} on node "
                    + $"{follower.Id}, which has {written.Last}, on its disk {follower.Witness.Durable(group).Last}");
        }
    }

    /// <summary>What is known of one life of a node.</summary>
    private sealed class Believer(int nodes)
    {
        /// <summary>The term in which it heard of a later one.</summary>
        public Term HeardIn { get; set; }

        public int Heard { get; set; }

        public long HeardAtTurn { get; set; }

        public int Version { get; set; } = -1;

        public ulong LeadsIn { get; private set; }

        public ulong[] Matches { get; } = new ulong[nodes + 1];

        /// <summary>The directories at the beginning of the leadership.</summary>
        public int[] Directories { get; } = new int[nodes + 1];

        public void Lead(ulong term, IReadOnlyList<SimNode> all)
        {
            LeadsIn = term;
            Array.Clear(Matches);
            foreach (SimNode node in all)
            {
                Directories[node.Id] = node.Directory;
            }
        }
    }
}
