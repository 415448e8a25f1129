using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The role of a node and how it changes: terms, pre-votes, votes, elections (Raft §5.2, thesis 9.6). Owned by one core;
/// not thread-safe.
/// </summary>
internal sealed class Roles
{
    /// <summary>Election timeouts for which a reluctant node leaves leadership to others: one and a half times the longest that one of them waits, so that it loses a first vote and is elected in a second.</summary>
    public const int ReluctantElections = 3;

    private readonly Members _members;
    private readonly Standing _standing;
    private readonly EntryLog _log;
    private readonly Outbox _outbox;
    private readonly Following _following;
    private readonly Leadership _leadership;
    private readonly Election _election;

    public Roles(RaftConfig config, Members members, Standing standing, EntryLog log, RoleParts parts)
    {
        _members = members;
        _standing = standing;
        _log = log;
        _outbox = parts.Outbox;
        _following = parts.Following;
        _leadership = parts.Leadership;
        _election = new Election(config, members);
        standing.Role = RoleWithoutLeadership;
    }

    private RaftRole Role => _standing.Role;

    private Term Term => _standing.Term;

    private RaftRole RoleWithoutLeadership => _members.SelfVotes ? RaftRole.Follower : RaftRole.Learner;

    private bool IsLeaderAlive => Role == RaftRole.Leader || (!_standing.Leader.IsNone && _election.IsWithinLease);

    /// <summary>Ticks since the leader of the term was last heard; 0 while this node leads.</summary>
    public int TicksWithoutLeader { get; private set; }

    /// <summary>A member that is not reluctant may still be elected.</summary>
    public bool IsSomebodyElsesTurn => TicksWithoutLeader < ReluctantElections * _election.TimeoutTicks;

    /// <summary>A tick has passed.</summary>
    public void CountSilence() => TicksWithoutLeader = Role == RaftRole.Leader ? 0 : TicksWithoutLeader + 1;

    /// <summary>True when the time without a leader is over and this node should campaign.</summary>
    public bool ElectionTick() => _members.SelfVotes && _election.Tick() && _standing.IsVoting;

    /// <summary>A message of a later term. True when it is to be handled, in its term if it speaks for one.</summary>
    public bool EnterTermOf(in RaftMessage message)
    {
        switch (message.Kind)
        {
            case RaftMessageKind.PreVote:
            case RaftMessageKind.PreVoteReply when !message.Reject:
                // The term of a pre-vote is one that nobody has entered yet.
                return message.Kind == RaftMessageKind.PreVote || message.Term == Term.Next();
            case RaftMessageKind.Vote when IsLeaderAlive && !message.Transfer:
                return false;
            default:
                EnterTerm(message.Term);
                return true;
        }
    }

    /// <summary>A message of an earlier term changes nothing here, but its sender learns the term (Raft §5.1).</summary>
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

    /// <summary>The sender speaks as the leader of this term.</summary>
    public void AcceptLeader(NodeId leader)
    {
        InvariantException.Require(Role != RaftRole.Leader, "one leader per term");
        if (Role is RaftRole.PreCandidate or RaftRole.Candidate)
        {
            BecomeFollower();
        }

        if (leader == _standing.Leader)
        {
            _election.Wait();
        }
        else
        {
            // Another draw for every leader: followers whose timeouts are equal would campaign together after each of them.
            _election.RestartClock();
            _election.ForgetSplits();
        }

        _standing.FollowLeader(leader);
        TicksWithoutLeader = 0;
    }

    // ---- Votes

    public void AnswerPreVote(in RaftMessage message)
    {
        if (IsLeaderAlive || _standing.IsStalled)
        {
            return;
        }

        bool free = message.Term > Term ? _standing.IsVoting : _standing.CanVoteFor(message.From);
        if (free && _log.IsUpToDate(message.Index, message.LogTerm))
        {
            _outbox.SendNow(new RaftMessage { Kind = RaftMessageKind.PreVoteReply, To = message.From, Term = message.Term });
        }
        else
        {
            _outbox.SendRefusal(new RaftMessage { Kind = RaftMessageKind.PreVoteReply, To = message.From, Reject = true });
        }
    }

    public void AnswerVote(in RaftMessage message)
    {
        if (_standing.CanVoteFor(message.From) && _log.IsUpToDate(message.Index, message.LogTerm))
        {
            if (Role == RaftRole.PreCandidate)
            {
                BecomeFollower();
            }

            _standing.GiveVote(message.From);
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
            case VoteOutcome.Open when !granted && !_standing.IsReluctant:
                _election.RetryAfterSplit();
                break;
            default:
                break;
        }
    }

    // ---- Voting rights

    /// <summary>Another voter has forgotten what it promised and asks how late its promises can have been. It counts on this term being durable.</summary>
    public void AnswerTermQuery(in RaftMessage message) => _outbox.SendRefusal(new RaftMessage
    {
        Kind = RaftMessageKind.TermReply,
        To = message.From,
        Index = Role == RaftRole.Leader ? _log.LastIndex : default,
        Round = message.Round,
    });

    /// <summary>No vote in a term up to <paramref name="term"/>: the own one is spent there.</summary>
    public void SpendVotesThrough(Term term)
    {
        if (term > Term)
        {
            EnterTerm(term);
        }

        if (term == Term && term.Value > 0 && _standing.Vote.IsNone)
        {
            _standing.GiveVote(_members.Self);
        }
    }

    public void AllowVoting()
    {
        // Nodes are often allowed at the same time: each waits its own while before it campaigns.
        _standing.AllowVoting();
        _election.RestartClock();
    }

    // ---- Roles

    /// <summary>Asks whether an election could be won, without disturbing anybody's term (thesis 9.6).</summary>
    public void StartPreVote()
    {
        _standing.Role = RaftRole.PreCandidate;
        _standing.ForgetLeader();
        _election.RestartClock();
        _election.BeginCount();
        AskForVotes(RaftMessageKind.PreVote, Term.Next(), transfer: false);
        CountPreVote(_members.Self, granted: true);
    }

    public void StartElection(bool transfer)
    {
        EnterTerm(Term.Next());
        _standing.Role = RaftRole.Candidate;
        _standing.GiveVote(_members.Self);
        _election.RestartClock();
        _election.BeginCount();
        AskForVotes(RaftMessageKind.Vote, Term, transfer);

        // The own vote is a promise like any other: it counts when it is on stable storage.
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

            var request = new RaftMessage { Kind = kind, To = voter, Term = term, Index = _log.LastIndex, LogTerm = _log.LastTerm, Transfer = transfer };
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
        _standing.Role = RaftRole.Leader;
        _standing.FollowLeader(_members.Self);
        _election.ForgetSplits();
        _leadership.Begin();
    }

    /// <summary>Enters a later term as a follower.</summary>
    public void EnterTerm(Term term)
    {
        BecomeFollower();
        _standing.EnterTerm(term);
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
            _standing.Role = RoleWithoutLeadership;
            _election.RestartClock();
        }
    }

    public void LeaveLeadership()
    {
        _leadership.End(_outbox);
        _standing.Role = RoleWithoutLeadership;
        _standing.ForgetLeader();
        _election.RestartClock();
    }
}
