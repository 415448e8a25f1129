using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The clock of a node without leadership and the count of the votes it gets. Election timeouts are drawn anew for every
/// attempt, so that rivals drift apart (Raft §5.2). Owned by one core; not thread-safe.
/// </summary>
internal sealed class Election
{
    private readonly int _electionTicks;
    private readonly Members _members;
    private readonly TickRandom _random;
    private readonly bool?[] _votes;
    private readonly int _place;
    private int _elapsed;
    private int _timeout;
    private int _splits;
    private bool _isSplit;

    public Election(RaftConfig config, Members members)
    {
        InvariantException.Require(config.HeartbeatTicks > 0 && config.ElectionTicks > config.HeartbeatTicks, "heartbeats are more frequent than elections");
        _electionTicks = config.ElectionTicks;
        _members = members;
        _random = new TickRandom(config.Seed);
        _votes = new bool?[members.Voters.Length];
        _place = Math.Max(0, members.VoterNumber(members.Self));
        RestartClock();
    }

    /// <summary>A leader was heard so lately that a majority may still follow it: no vote against it (thesis 4.2.3).</summary>
    public bool IsWithinLease => _elapsed < _electionTicks;

    /// <summary>The shortest election timeout; none is twice as long.</summary>
    public int TimeoutTicks => _electionTicks;

    /// <summary>True when the time without a leader is over.</summary>
    public bool Tick() => ++_elapsed >= _timeout;

    /// <summary>The leader was heard, or a vote was given: wait again.</summary>
    public void Wait() => _elapsed = 0;

    public void RestartClock()
    {
        _elapsed = 0;
        _timeout = _electionTicks + _random.Below(_electionTicks);
    }

    public void BeginCount()
    {
        Array.Clear(_votes);
        _isSplit = false;
    }

    /// <summary>
    /// A vote was refused while the others could still elect this node: a rival campaigns too, and it is likely that neither wins. After the first split vote in a
    /// row the next attempt follows in a part of an election timeout that no other voter uses, after the second in a random part of the later half of one. From
    /// the third on the timeout stays as it is, since something other than chance keeps candidates from winning. Timing only: a campaign begins with a pre-vote as ever.
    /// </summary>
    public void RetryAfterSplit()
    {
        if (_isSplit)
        {
            return;
        }

        _isSplit = true;
        _splits++;
        int quarter = Math.Max(1, _electionTicks / 4);
        int half = Math.Max(1, _electionTicks / 2);
        int retry = _splits switch
        {
            // With 16 ticks: 4 or 5 for the first voter, 8 or 9 for the second, and so on, so that rivals are three ticks or more apart.
            1 => (quarter * (1 + _place)) + _random.Below(Math.Max(1, quarter / 2)),
            2 => half + _random.Below(half),
            _ => int.MaxValue,
        };
        if (retry < _timeout - _elapsed)
        {
            _elapsed = 0;
            _timeout = retry;
        }
    }

    /// <summary>A leader is known: votes that are split from now on are the first ones.</summary>
    public void ForgetSplits() => _splits = 0;

    /// <summary>Counts a vote; a second one of the same voter changes nothing.</summary>
    public VoteOutcome Count(NodeId voter, bool granted)
    {
        int number = _members.VoterNumber(voter);
        if (number >= 0)
        {
            _votes[number] ??= granted;
        }

        int grants = 0;
        int refusals = 0;
        foreach (bool? vote in _votes)
        {
            grants += vote == true ? 1 : 0;
            refusals += vote == false ? 1 : 0;
        }

        return grants >= _members.Majority ? VoteOutcome.Won
            : _votes.Length - refusals < _members.Majority ? VoteOutcome.Lost
            : VoteOutcome.Open;
    }
}
