using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>The result of counting an election's votes so far.</summary>
internal enum VoteOutcome : byte
{
    Open,
    Won,
    Lost,
}

/// <summary>
/// The election timeout of a node that does not lead, and the count of its votes. Each attempt draws a new random
/// timeout, so that rivals drift apart (Raft §5.2). Owned by one core; not thread-safe.
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
        InvariantException.Require(
            config.HeartbeatTicks > 0 && config.ElectionTicks > config.HeartbeatTicks,
            "heartbeats are more frequent than elections");
        _electionTicks = config.ElectionTicks;
        _members = members;
        _random = new TickRandom(config.Seed);
        _votes = new bool?[members.Voters.Length];
        _place = Math.Max(0, members.VoterNumber(members.Self));
        RestartClock();
    }

    /// <summary>
    /// The leader was heard within the shortest election timeout. A majority may still follow it, so this node grants
    /// no vote against it (thesis 4.2.3).
    /// </summary>
    public bool IsWithinLease => _elapsed < _electionTicks;

    /// <summary>The shortest election timeout. Every timeout is less than twice as long.</summary>
    public int TimeoutTicks => _electionTicks;

    /// <summary>Counts one tick. True when the election timeout has expired.</summary>
    public bool Tick() => ++_elapsed >= _timeout;

    /// <summary>Restarts the timeout without a new draw: the leader was heard, or a vote was granted.</summary>
    public void Wait() => _elapsed = 0;

    /// <summary>
    /// Restarts the timeout with a new random length, two timeouts later if others are to be elected first.
    /// </summary>
    public void RestartClock(bool yields = false)
    {
        _elapsed = yields ? -2 * _electionTicks : 0;
        _timeout = _electionTicks + _random.Below(_electionTicks);
    }

    /// <summary>Starts to count the votes of a new campaign.</summary>
    public void BeginCount()
    {
        Array.Clear(_votes);
        _isSplit = false;
    }

    /// <summary>
    /// Shortens the timeout after a split vote. A voter refused while the rest could still elect this node, so a rival
    /// campaigns too and probably neither wins. After the first split in a row, each voter retries in its own part of
    /// an election timeout. After the second, it retries at a random moment in the later half of one. From the third on
    /// the timeout stays as it is, because something other than chance keeps candidates from winning. Only the timing
    /// changes: every campaign begins with a pre-vote.
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
            // With 16 ticks: 4 or 5 for the first voter, 8 or 9 for the second, and so on. Rivals are at least three
            // ticks apart.
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

    /// <summary>A leader is known: the next split vote counts as the first one.</summary>
    public void ForgetSplits() => _splits = 0;

    /// <summary>Counts a vote. A repeated vote of the same voter has no effect.</summary>
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

/// <summary>
/// Seeded splitmix64 generator for election timeouts. The same seed produces the same run. Owned by one core; not
/// thread-safe.
/// </summary>
internal sealed class TickRandom(ulong seed)
{
    private ulong _state = seed;

    /// <summary>A number in [0, <paramref name="bound"/>).</summary>
    public int Below(int bound)
    {
        _state += 0x9E3779B97F4A7C15;
        ulong mixed = _state;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
        mixed ^= mixed >> 31;
        return (int)(mixed % (ulong)bound);
    }
}
