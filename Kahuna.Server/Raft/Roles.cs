using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Raft;

/// <summary>The parts of a core that role changes affect. Owned by one core.</summary>
internal readonly record struct RoleParts(Outbox Outbox, Following Following, Leadership Leadership);

/// <summary>
/// Role changes of a node: terms, pre-votes, votes and elections (Raft §5.2, thesis 9.6). Owned by one core; not
/// thread-safe.
/// </summary>
internal sealed class Roles
{
    /// <summary>
    /// Election timeouts during which a reluctant node leaves leadership to others: one and a half times the longest
    /// wait of another member. That member can lose a first vote and still win a second one.
    /// </summary>
    public const int ReluctantElections = 3;

    private readonly Members _members;
    private readonly RoleState _state;
    private readonly EntryLog _log;
    private readonly Outbox _outbox;
    private readonly Following _following;
    private readonly Leadership _leadership;
    private readonly Election _election;

    public Roles(RaftConfig config, Members members, RoleState state, EntryLog log, RoleParts parts)
    {
        _members = members;
        _state = state;
        _log = log;
        _outbox = parts.Outbox;
        _following = parts.Following;
        _leadership = parts.Leadership;
        _election = new Election(config, members);
        state.Role = RoleWithoutLeadership;
    }

    private RaftRole Role => _state.Role;

    private Term Term => _state.Term;

    private RaftRole RoleWithoutLeadership => _members.SelfVotes ? RaftRole.Follower : RaftRole.Learner;

    private bool IsLeaderAlive =>
        Role == RaftRole.Leader || (!_state.Leader.IsNone && _election.IsWithinLease) || _state.Promise.Binds;

    /// <summary>Ticks since the term's leader was last heard; 0 while this node leads.</summary>
    public int TicksWithoutLeader { get; private set; }

    /// <summary>A reluctant node must wait: a member that is not reluctant may still be elected.</summary>
    public bool ShouldYield => TicksWithoutLeader < ReluctantElections * _election.TimeoutTicks;

    /// <summary>Counts one tick.</summary>
    public void CountSilence() => TicksWithoutLeader = Role == RaftRole.Leader ? 0 : TicksWithoutLeader + 1;

    /// <summary>
    /// Counts one tick of the election timeout. True when it has expired and this node should campaign.
    /// </summary>
    public bool ElectionTick() => _members.SelfVotes && _election.Tick() && _state.IsVoting;

    /// <summary>
    /// Handles the term of a message of a later term. True when the message must be handled; this node is in its term
    /// then, unless it belongs to a pre-vote.
    /// </summary>
    public bool EnterTermOf(in RaftMessage message)
    {
        switch (message.Kind)
        {
            case RaftMessageKind.PreVote:
            case RaftMessageKind.PreVoteReply when !message.Reject:
                // No node has entered the term of a pre-vote yet.
                return message.Kind == RaftMessageKind.PreVote || message.Term == Term.Next();
            case RaftMessageKind.Vote when IsLeaderAlive && !message.Transfer:
                return false;
            default:
                EnterTerm(message.Term);
                return true;
        }
    }

    /// <summary>
    /// Answers a message of an earlier term. It changes nothing here, but its sender learns the term (Raft §5.1).
    /// </summary>
    public void AnswerStale(in RaftMessage message)
    {
        RaftMessageKind answer = message.Kind switch
        {
            RaftMessageKind.Append => RaftMessageKind.AppendReply,
            RaftMessageKind.Heartbeat => RaftMessageKind.HeartbeatReply,
            RaftMessageKind.PreVote => RaftMessageKind.PreVoteReply,
            RaftMessageKind.Vote => RaftMessageKind.VoteReply,
            _ => RaftMessageKind.None,
        };
        if (answer != RaftMessageKind.None)
        {
            _outbox.SendRefusal(new RaftMessage { Kind = answer, To = message.From, Reject = true });
        }
    }

    /// <summary>Accepts the sender as the leader of this term.</summary>
    public void AcceptLeader(NodeId leader)
    {
        InvariantException.Require(Role != RaftRole.Leader, "one leader per term");
        if (Role is RaftRole.PreCandidate or RaftRole.Candidate)
        {
            BecomeFollower();
        }

        if (leader == _state.Leader)
        {
            _election.Wait();
        }
        else
        {
            // Draw anew for every leader: followers with equal timeouts would campaign together after each one.
            _election.RestartClock();
            _election.ForgetSplits();
        }

        _state.FollowLeader(leader);
        TicksWithoutLeader = 0;
    }

    // ---- Votes

    public void AnswerPreVote(in RaftMessage message)
    {
        if (IsLeaderAlive || _state.IsStalled)
        {
            return;
        }

        bool free = message.Term > Term ? _state.IsVoting : _state.CanVoteFor(message.From);
        if (free && _log.IsUpToDate(message.Index, message.LogTerm))
        {
            _outbox.SendNow(
                new RaftMessage { Kind = RaftMessageKind.PreVoteReply, To = message.From, Term = message.Term });
        }
        else
        {
            _outbox.SendRefusal(
                new RaftMessage { Kind = RaftMessageKind.PreVoteReply, To = message.From, Reject = true });
        }
    }

    public void AnswerVote(in RaftMessage message)
    {
        if (_state.CanVoteFor(message.From) && _log.IsUpToDate(message.Index, message.LogTerm))
        {
            if (Role == RaftRole.PreCandidate)
            {
                BecomeFollower();
            }

            _state.GiveVote(message.From);
            _election.Wait();
            _outbox.SendAfterDurable(new RaftMessage { Kind = RaftMessageKind.VoteReply, To = message.From });
        }
        else
        {
            _outbox.SendRefusal(new RaftMessage { Kind = RaftMessageKind.VoteReply, To = message.From, Reject = true });
        }
    }

    public void CountPreVote(NodeId voter, bool granted)
    {
        switch (_election.Count(voter, granted))
        {
            case VoteOutcome.Won:
                StartElection(transfer: false);
                break;
            case VoteOutcome.Lost:
                BecomeFollower();
                break;
            default:
                break;
        }
    }

    public void CountVote(NodeId voter, bool granted)
    {
        switch (_election.Count(voter, granted))
        {
            case VoteOutcome.Won:
                BecomeLeader();
                break;
            case VoteOutcome.Lost:
                BecomeFollower();
                break;
            case VoteOutcome.Open when !granted && !_state.IsReluctant:
                _election.RetryAfterSplit();
                break;
            default:
                break;
        }
    }

    // ---- Voting rights

    /// <summary>
    /// Answers a voter that has forgotten its promises and asks how late they can be. It relies on this term being
    /// durable.
    /// </summary>
    public void AnswerTermQuery(in RaftMessage message) => _outbox.SendRefusal(new RaftMessage
    {
        Kind = RaftMessageKind.TermReply,
        To = message.From,
        Index = Role == RaftRole.Leader ? _log.LastIndex : default,
        Round = message.Round,
    });

    /// <summary>Spends this node's vote in every term up to <paramref name="term"/>.</summary>
    public void SpendVotesThrough(Term term)
    {
        if (term > Term)
        {
            EnterTerm(term);
        }

        if (term == Term && term.Value > 0 && _state.Vote.IsNone)
        {
            _state.GiveVote(_members.Self);
        }
    }

    public void AllowVoting()
    {
        // Nodes are often allowed at the same time, so each draws its own timeout before it campaigns.
        _state.AllowVoting();
        _election.RestartClock();
    }

    // ---- Roles

    /// <summary>Asks whether this node could win an election, without changing any node's term (thesis 9.6).</summary>
    public void StartPreVote()
    {
        _state.Role = RaftRole.PreCandidate;
        _state.ForgetLeader();
        _election.RestartClock();
        _election.BeginCount();
        AskForVotes(RaftMessageKind.PreVote, Term.Next(), transfer: false);
        CountPreVote(_members.Self, granted: true);
    }

    public void StartElection(bool transfer)
    {
        EnterTerm(Term.Next());
        _state.Role = RaftRole.Candidate;
        _state.GiveVote(_members.Self);
        _election.RestartClock();
        _election.BeginCount();
        AskForVotes(RaftMessageKind.Vote, Term, transfer);

        // This node's own vote is a promise too: it counts once it is on stable storage.
        _outbox.SendAfterDurable(new RaftMessage { Kind = RaftMessageKind.VoteReply, To = _members.Self });
    }

    private void AskForVotes(RaftMessageKind kind, Term term, bool transfer)
    {
        foreach (NodeId voter in _members.Voters)
        {
            if (voter == _members.Self)
            {
                continue;
            }

            var request = new RaftMessage
            {
                Kind = kind,
                To = voter,
                Term = term,
                Index = _log.LastIndex,
                LogTerm = _log.LastTerm,
                Transfer = transfer,
            };
            if (kind == RaftMessageKind.Vote)
            {
                _outbox.SendAfterDurable(request);
            }
            else
            {
                _outbox.SendNow(request);
            }
        }
    }

    private void BecomeLeader()
    {
        _state.Role = RaftRole.Leader;
        _state.FollowLeader(_members.Self);
        _election.ForgetSplits();
        _leadership.Begin();
    }

    /// <summary>Enters a later term as a follower.</summary>
    public void EnterTerm(Term term)
    {
        BecomeFollower();
        _state.EnterTerm(term);
        _following.EnterTerm();
    }

    private void BecomeFollower()
    {
        if (Role == RaftRole.Leader)
        {
            LeaveLeadership();
        }
        else if (Role != RoleWithoutLeadership)
        {
            _state.Role = RoleWithoutLeadership;
            _election.RestartClock();
        }
    }

    public void LeaveLeadership(bool yields = false)
    {
        _leadership.End(_outbox);
        _state.Role = RoleWithoutLeadership;
        _state.ForgetLeader();
        _election.RestartClock(yields);
    }
}

/// <summary>
/// How a follower or learner handles its leader's appends and heartbeats (Raft §5.3). Answers wait for the Ready, so
/// that one acknowledgement covers all appends of a turn. Owned by one core; not thread-safe.
/// </summary>
/// <param name="log">This node's log.</param>
/// <param name="levelMax">The highest feature level of entries that this node can apply.</param>
/// <param name="promise">What this node has promised to its leader.</param>
/// <param name="isForgetful">This node may have acknowledged entries to its present leader that its log no longer
/// holds.</param>
internal sealed class Following(EntryLog log, FeatureLevel levelMax, VotePromise promise, bool isForgetful)
{
    private LogIndex _matched;
    private bool _acknowledge;
    private NodeId _acknowledgeTo;
    private bool _refuse;
    private RaftMessage _refusal;
    private bool _answerHeartbeat;
    private RaftMessage _heartbeatReply;

    /// <summary>
    /// Up to this index the log, durable or not, is known to match the log of the current term's leader.
    /// </summary>
    public LogIndex Matched => _matched;

    /// <summary>
    /// The highest commit index that a leader has reported. Committed entries stay committed in every later term.
    /// </summary>
    public LogIndex HeardCommit { get; private set; }

    /// <summary>
    /// A leader has sent an entry of this feature level, which this node cannot apply. The append was neither stored
    /// nor answered, and the owner stops the node. Null: none was sent.
    /// </summary>
    public FeatureLevel? UnknownLevel { get; private set; }

    /// <summary>Starts a new term: nothing is known to match its leader's log, and pending answers are void.</summary>
    public void EnterTerm()
    {
        _matched = default;
        _acknowledge = false;
        _refuse = false;
        _answerHeartbeat = false;
    }

    /// <summary>
    /// Handles an append of the current leader. False, with nothing stored or answered, when it is malformed or has an
    /// entry of an unknown feature level.
    /// </summary>
    public bool Append(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (!IsWellFormed(message, entries))
        {
            return false;
        }

        Hear(message.Commit);

        // Entries below the start are committed, so the leader has them too. Their terms are no longer known here.
        if (message.Index >= log.Start && !log.Matches(message.Index, message.LogTerm))
        {
            InvariantException.Require(message.Index > log.CommitIndex, "a leader holds every committed entry");
            Refuse(message);
            return true;
        }

        LogIndex last = message.Index + (ulong)message.EntryCount;
        Store(message, entries);
        LogIndex agreed = last > log.CommitIndex ? last : log.CommitIndex;
        if (agreed > _matched)
        {
            _matched = agreed;
        }

        _acknowledge = true;
        _acknowledgeTo = message.From;
        TakeCommit(message.Commit < last ? message.Commit : last);
        return true;
    }

    public void Heartbeat(in RaftMessage message)
    {
        Hear(message.Hint);

        // The leader may count an acknowledgement of a log that was lost since.
        LogIndex held = isForgetful ? _matched : log.LastIndex;
        TakeCommit(message.Commit < held ? message.Commit : held);

        // One reply answers several heartbeats: with the newest round, which confirms the older ones, and with the
        // highest index sent, which shows what was lost.
        ulong round = _answerHeartbeat ? Math.Max(_heartbeatReply.Round, message.Round) : message.Round;
        LogIndex sent = _answerHeartbeat && _heartbeatReply.Hint > message.Index ? _heartbeatReply.Hint : message.Index;
        _heartbeatReply = new RaftMessage
        {
            Kind = RaftMessageKind.HeartbeatReply,
            To = message.From,
            Index = _matched,
            Hint = sent,
            Round = round,
            PromiseMs = message.PromiseMs,
        };
        _answerHeartbeat = true;
    }

    /// <summary>
    /// A snapshot up to <paramref name="index"/> replaced the log. It is committed, so every later leader holds those
    /// entries.
    /// </summary>
    public void Restarted(LogIndex index, NodeId leader)
    {
        _matched = index;
        _refuse = false;
        _acknowledge = !leader.IsNone;
        _acknowledgeTo = leader;
    }

    /// <summary>Queues the pending answers.</summary>
    public void Prepare(Outbox outbox)
    {
        if (_answerHeartbeat)
        {
            // The promise counts from here: the time was read after the heartbeat had come.
            _answerHeartbeat = false;
            _heartbeatReply.PromiseMs = promise.Make(_heartbeatReply.PromiseMs);
            outbox.SendNow(_heartbeatReply);
        }

        if (_refuse)
        {
            _refuse = false;
            outbox.SendRefusal(_refusal);
        }

        if (_acknowledge)
        {
            _acknowledge = false;
            outbox.SendAfterDurable(new RaftMessage
            {
                Kind = RaftMessageKind.AppendReply,
                To = _acknowledgeTo,
                Index = _matched,
            });
        }
    }

    /// <summary>
    /// Skips entries that the log has, cuts those that conflict with the leader's, and appends the rest.
    /// </summary>
    private void Store(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        LogIndex index = message.Index;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            index = index.Next();
            ReadOnlySpan<byte> encoded = rest;
            InvariantException.Require(
                EntryCodec.TryRead(ref rest, out Term term, out _, out _), "checked entries decode");
            if (index < log.Start || log.Matches(index, term))
            {
                continue;
            }

            if (index <= log.LastIndex)
            {
                log.Cut(index);
            }

            log.AppendEncoded(term, encoded[..^rest.Length]);
        }
    }

    private void Refuse(in RaftMessage message)
    {
        // The last index of this log at which the leader's can match. Whole later terms are skipped. The logs always
        // match at the commit index.
        LogIndex hint = log.LastAtMost(message.Index, message.LogTerm);
        hint = hint > log.CommitIndex ? hint : log.CommitIndex;
        _refusal = new RaftMessage
        {
            Kind = RaftMessageKind.AppendReply,
            To = message.From,
            Index = message.Index,
            LogTerm = log.TermAt(hint),
            Hint = hint,
            Reject = true,
        };
        _refuse = true;
    }

    private void Hear(LogIndex commit) => HeardCommit = commit > HeardCommit ? commit : HeardCommit;

    private void TakeCommit(LogIndex commit)
    {
        if (commit > log.CommitIndex)
        {
            log.Commit(commit);
        }
    }

    private bool IsWellFormed(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (message.LogTerm > message.Term || (message.Index.Value == 0) != (message.LogTerm.Value == 0))
        {
            return false;
        }

        int count = 0;
        Term term = message.LogTerm;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            if (!EntryCodec.TryRead(ref rest, out Term next, out _, out FeatureLevel level, out _)
                || next < term
                || next > message.Term
                || next.Value == 0)
            {
                return false;
            }

            if (level > levelMax)
            {
                UnknownLevel = level;
                return false;
            }

            term = next;
            count++;
        }

        return count == message.EntryCount;
    }
}

/// <summary>Decides which messages this node accepts at all. Immutable; owned by one core.</summary>
internal sealed class MessageRules(Members members)
{
    /// <summary>
    /// Upper bound of terms and indexes from peers. No log reaches it, and sums below it cannot overflow.
    /// </summary>
    private const ulong ValueMax = 1UL << 62;

    /// <summary>
    /// False for a malformed message, for one that its sender may not send, and for one addressed to another node.
    /// </summary>
    public bool IsAcceptable(in RaftMessage message, Term ownTerm)
    {
        bool isTermQuestion = message.Kind is RaftMessageKind.TermQuery or RaftMessageKind.TermReply;
        if (message.To != members.Self
            || (message.Term.Value == 0 && !isTermQuestion) || message.Term.Value >= ValueMax
            || message.Index.Value >= ValueMax || message.Hint.Value >= ValueMax
            || message.Commit.Value >= ValueMax || message.EntryCount < 0)
        {
            return false;
        }

        if (message.From == members.Self)
        {
            return message.Kind == RaftMessageKind.VoteReply && message.Term <= ownTerm;
        }

        return message.Kind switch
        {
            RaftMessageKind.PreVote or RaftMessageKind.Vote or RaftMessageKind.PreVoteReply or RaftMessageKind.VoteReply
                or RaftMessageKind.TimeoutNow or RaftMessageKind.TermQuery or RaftMessageKind.TermReply =>
                members.SelfVotes && members.IsVoter(message.From),
            RaftMessageKind.Append or RaftMessageKind.Heartbeat => members.IsVoter(message.From),
            RaftMessageKind.AppendReply or RaftMessageKind.HeartbeatReply => members.IsMember(message.From),
            _ => false,
        };
    }
}
