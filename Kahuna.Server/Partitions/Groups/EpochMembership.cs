using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// How far this node takes part in one ephemeral group: which epoch it has joined, whom it knows by which start, and
/// whether it has pledged to keep out (docs/adr/0011-ephemeral-groups.md). Owned by the group; not thread-safe.
/// </summary>
/// <remarks>
/// <para>
/// Raft rests on a log that a node finds again after a restart; an ephemeral group forgets its log on purpose. An epoch
/// is a life of the group in which no node forgets twice without a trace. The numbers are those of the ADR's decisions.
/// </para>
/// <list type="number">
/// <item>
/// Joining (1). A node takes part in an epoch from empty once. The epoch is stored with the group's hard state
/// (<see cref="Stored"/>) before the first promise in it leaves. So a start that finds the open epoch joined
/// (<see cref="JoinedIn"/>) knows that an earlier start may have promised something: it is amnesiac, does not vote, and
/// what it acknowledges is not counted until it is restored.
/// </item>
/// <item>
/// Incarnations (4). Each start has a number, which the meta group records before the node takes part
/// (<see cref="Learn"/>). A message of an older start may have waited in a queue since before the restart: it is
/// dropped, because its sender has forgotten what it says. A message of a later start tells that the sender has
/// forgotten, so a leader forgets what it counted for it (<see cref="MayTake"/>).
/// </item>
/// <item>
/// Pledges (5). When a majority may have forgotten, no leader can be elected any longer, and nobody in the group can
/// prove it. So each member gives the epoch up by itself: it says so to the meta group, and keeps out from that moment
/// on, not from the moment at which that is recorded. Nothing goes in or out, also what waits for the disk. Otherwise
/// the meta group could close the epoch with this pledge while the node still helps to commit something in it.
/// </item>
/// <item>
/// A pledge is taken back only by the meta group, and only by its number. The node that hears a leader asks for it, and
/// goes on keeping out until the records show it: the epoch may be closed by then, with this very pledge.
/// </item>
/// <item>
/// Closing (6). The meta group closes an epoch when a majority has pledged. Two majorities share a member, so no
/// majority is left that could commit anything in the epoch, and the next one may begin empty.
/// </item>
/// </list>
/// </remarks>
/// <param name="group">The group.</param>
/// <param name="options">Who this node is and how long it waits for a leader.</param>
/// <param name="joined">The epoch that the node had joined before it started; 0 for none.</param>
/// <param name="ask">
/// Takes what the meta group is to record. It may be lost, so it is said again until the meta group's records show it.
/// </param>
internal sealed class EpochMembership(GroupId group, LoopOptions options, Epoch joined, Action<MetaCommand> ask)
{
    private readonly Dictionary<NodeId, ulong> _incarnations = [];
    private VotingRight _voting = options.Voting;
    private ulong _incarnation;
    private ulong _pledge;
    private bool _pledged;
    private bool _leaderHeard;
    private bool _knowsAmnesiac;
    private bool _othersPledged;
    private int _silentTicks;
    private int _askTicks;
    private long _ceilingMs;
    private long _ceilingAskedMs;

    /// <summary>The longest lease that the epoch before could grant; 0 in the first.</summary>
    public long LeasesBeforeMs { get; private set; }

    /// <summary>The slot map as of the beginning of the epoch; null while it was the initial one.</summary>
    public SlotMap? SlotsBefore { get; private set; }

    /// <summary>The epoch that this node is in; 0 until the meta group has recorded this start.</summary>
    public Epoch Epoch { get; private set; }

    /// <summary>
    /// Not before the meta group knows this start and its pledges have been read back, and not while one holds.
    /// </summary>
    public bool IsTakingPart => !Epoch.IsNone && !_pledged;

    /// <summary>What this node's messages carry.</summary>
    public MessageStamp Stamp => new(Epoch, _incarnation);

    /// <summary>
    /// The epoch that a stored hard state names: it has a commit index for groups whose log is stored, and the epoch
    /// joined for those whose log is not.
    /// </summary>
    public static Epoch JoinedIn(in HardState state) => new(state.Commit.Value);

    /// <summary>The hard state as it is stored.</summary>
    public HardState Stored(in HardState state) => state with { Commit = new LogIndex(Epoch.Value) };

    /// <summary>It is certain now that the node's directory never took part, or is restored.</summary>
    public void AllowVoting() => _voting = VotingRight.Full;

    /// <summary>
    /// The meta group's records have changed. True when this node begins anew, empty, in <see cref="Epoch"/>, with this
    /// right.
    /// </summary>
    public bool Learn(MetaView view, out VotingRight voting)
    {
        voting = VotingRight.Full;
        MetaNode self = view.Node(options.Self);
        if (self.Incarnation == 0 || self.Nonce != options.Seed)
        {
            return false;
        }

        _incarnation = self.Incarnation;
        MetaGroup known = view.Group(group);
        MetaPledge own = known.PledgeOf(options.Self);
        _othersPledged = known.Pledges.Any(pledge => pledge.IsActive && pledge.Node != options.Self);
        _ceilingMs = known.CeilingMs;
        if (Epoch == known.Epoch)
        {
            if (_pledged && own.Released >= _pledge)
            {
                _pledged = false;
                _silentTicks = 0;
            }

            return false;
        }

        InvariantException.Require(known.Epoch > Epoch, "epochs ascend");
        if (Epoch.IsNone)
        {
            // An earlier start may have taken part, or pledged.
            voting = _voting != VotingRight.Full
                ? _voting : joined == known.Epoch ? VotingRight.Amnesiac : VotingRight.Full;
        }

        Epoch = known.Epoch;
        LeasesBeforeMs = known.CeilingBeforeMs;
        SlotsBefore = view.SlotsOfEpoch(group);
        _ceilingAskedMs = 0;
        _pledge = Math.Max(own.Taken, own.Released);
        _pledged = own.IsActive;
        _leaderHeard = false;
        _knowsAmnesiac = false;
        _silentTicks = 0;
        _askTicks = 0;
        return true;
    }

    /// <summary>
    /// True when a lease of this length may be granted in this epoch. Otherwise the meta group is asked to make room
    /// for it.
    /// </summary>
    public bool MayLease(long leaseMs)
    {
        if (leaseMs > _ceilingMs && leaseMs > _ceilingAskedMs)
        {
            _ceilingAskedMs = leaseMs;
            Say(CommandKind.RaiseCeiling, (ulong)leaseMs);
        }

        return leaseMs <= _ceilingMs;
    }

    /// <summary>
    /// A message has arrived. False when it must not be taken in. <paramref name="returned"/>: its sender has been
    /// started anew since it was heard last.
    /// </summary>
    public bool MayTake(in RaftMessage message, in MessageStamp stamp, Term term, out bool returned)
    {
        returned = false;
        if (Epoch.IsNone || stamp.Epoch != Epoch)
        {
            return false;
        }

        ulong known = _incarnations.GetValueOrDefault(message.From);
        if (stamp.Incarnation < known)
        {
            return false;
        }

        returned = known != 0 && stamp.Incarnation > known;
        if (stamp.Incarnation != known)
        {
            _incarnations[message.From] = stamp.Incarnation;
        }

        if (_pledged)
        {
            _leaderHeard |= message.Kind is RaftMessageKind.Append or RaftMessageKind.Heartbeat && message.Term >= term;
            return false;
        }

        _knowsAmnesiac |= message is { Kind: RaftMessageKind.PreVoteReply, Uncounted: true };
        return true;
    }

    /// <summary>A tick of the node's clock, before the core's.</summary>
    public void Tick(RaftCore core)
    {
        if (Epoch.IsNone)
        {
            return;
        }

        // What was asked for may be lost.
        _ceilingAskedMs = 0;
        if (_pledged)
        {
            KeepPledge();
            return;
        }

        if (core.TicksWithoutLeader == 0)
        {
            _silentTicks = 0;
            _knowsAmnesiac = false;
        }
        else if (++_silentTicks >= Patience(core))
        {
            _pledge++;
            _pledged = true;
            _leaderHeard = false;
            _askTicks = 0;
            Say(CommandKind.Pledge, _pledge);
        }
    }

    /// <summary>
    /// Who has nothing waits less long than who still has everything, and waits for ever as long as nobody is known who
    /// gives nothing: by its answer, or, when it no longer answers, by its pledge. The only voter that has nothing
    /// waits for nobody.
    /// </summary>
    private int Patience(RaftCore core) =>
        core.IsVoting ? _knowsAmnesiac || _othersPledged ? options.PledgeTicks : int.MaxValue
        : options.Voters.Count == 1 ? 1
        : options.AmnesiacPledgeTicks;

    /// <summary>Says the pledge again, for it may be lost, or that it is not needed.</summary>
    private void KeepPledge()
    {
        if (++_askTicks >= options.AskMetaTicks)
        {
            _askTicks = 0;
            Say(_leaderHeard ? CommandKind.ReleasePledge : CommandKind.Pledge, _pledge);
            _leaderHeard = false;
        }
    }

    private void Say(CommandKind kind, ulong number) => ask(new MetaCommand(kind)
    {
        Node = options.Self,
        Incarnation = _incarnation,
        Group = group,
        Epoch = Epoch,
        Number = number,
    });
}
