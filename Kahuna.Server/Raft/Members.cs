using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The members of a group, voters and learners, and the size of a majority. Immutable; owned by one core.
/// </summary>
internal sealed class Members
{
    private readonly NodeId[] _voters;
    private readonly NodeId[] _learners;

    public Members(RaftConfig config)
    {
        Self = config.Self;
        _voters = [.. config.Voters];
        _learners = [.. config.Learners];
        InvariantException.Require(_voters.Length > 0, "a group has at least one voter");
        InvariantException.Require(!Self.IsNone, "a member has an id");
        InvariantException.Require(
            _voters.Concat(_learners).Distinct().Count() == _voters.Length + _learners.Length,
            "a node is listed once among voters and learners");
        SelfVotes = IsVoter(Self);
    }

    public NodeId Self { get; }

    /// <summary>This node is a voter.</summary>
    public bool SelfVotes { get; }

    public ReadOnlySpan<NodeId> Voters => _voters;

    public ReadOnlySpan<NodeId> Learners => _learners;

    public int Majority => (_voters.Length / 2) + 1;

    public bool IsVoter(NodeId node) => Array.IndexOf(_voters, node) >= 0;

    public bool IsMember(NodeId node) => IsVoter(node) || Array.IndexOf(_learners, node) >= 0;

    /// <summary>Position among the voters, or -1.</summary>
    public int VoterNumber(NodeId node) => Array.IndexOf(_voters, node);

    /// <summary>
    /// The greatest value that a majority of the voters reaches. <paramref name="values"/> holds one value per voter
    /// and is sorted.
    /// </summary>
    public ulong ReachedByMajority(Span<ulong> values)
    {
        InvariantException.Require(values.Length == _voters.Length, "one value per voter");
        values.Sort();
        return values[_voters.Length - Majority];
    }
}
