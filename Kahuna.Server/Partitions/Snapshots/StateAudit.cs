using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// The comparison of the members' states: when a leader asks for it, who has answered, and what follows
/// (docs/adr/0018-replicas-compare-digests.md). On every member it knows the latest mark. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class StateAudit(GroupId group, LoopOptions options, Action<ReportLine> report)
{
    private readonly ulong?[] _answers = new ulong?[options.Voters.Count];
    private LogIndex _marked;
    private ulong _digest;
    private LogIndex _askedAt;
    private ClusterTime _askedTime;
    private bool _isAsking;
    private bool _isOpen;
    private bool _isDifferenceTold;

    /// <summary>The latest mark that this node has applied or is in the state that it was given; 0: none.</summary>
    public LogIndex Marked => _marked;

    /// <summary>The digest of this node's state there.</summary>
    public ulong Digest => _digest;

    /// <summary>This node leads, from this cluster time on.</summary>
    public void BeginServing(ClusterTime clusterNow)
    {
        _askedTime = clusterNow;
        _isAsking = false;
        _isOpen = false;
        _isDifferenceTold = false;
    }

    /// <summary>
    /// Leader: a mark is due. Not where nothing was applied since the last one and nothing has a deadline.
    /// </summary>
    public bool IsDue(ClusterTime clusterNow, LogIndex applied, bool hasDeadlines) =>
        !_isAsking && clusterNow - _askedTime >= options.CheckIntervalMs && (hasDeadlines || applied > _askedAt);

    /// <summary>Leader: a mark was proposed.</summary>
    public void Asked(ClusterTime clusterNow)
    {
        _askedTime = clusterNow;
        _isAsking = true;
    }

    /// <summary>A mark is applied. On a leader answers are taken from here on.</summary>
    public void Mark(LogIndex index, ulong digest, bool isLeader)
    {
        _marked = index;
        _digest = digest;
        _isOpen = isLeader;
        _isAsking = false;
        if (isLeader)
        {
            _askedAt = index;
            Array.Clear(_answers);
        }
    }

    /// <summary>
    /// Leader: a member, or this node, has told its digest at the latest mark. What is to be proposed; null while that
    /// is open.
    /// </summary>
    public CheckEntry? Answered(NodeId member, LogIndex index, ulong digest, ClusterTime clusterNow)
    {
        int voter = VoterNumber(member);
        if (!_isOpen || voter < 0 || index != _marked)
        {
            return null;
        }

        _answers[voter] = digest;
        int answered = 0;
        int same = 0;
        foreach (ulong? answer in _answers)
        {
            answered += answer is null ? 0 : 1;
            same += answer == digest ? 1 : 0;
        }

        if (same > _answers.Length / 2)
        {
            _isOpen = false;
            return new CheckEntry(clusterNow, CheckKind.Agreed, _marked, digest);
        }

        if (same < answered && !_isDifferenceTold)
        {
            _isDifferenceTold = true;
            report(
                $"{group.Title}: the states of its members differ at entry {_marked}, and too few have answered to "
                    + $"tell which are right; the next comparison is in {options.CheckIntervalMs / 1000} s.");
        }

        if (answered < _answers.Length)
        {
            return null;
        }

        _isOpen = false;
        return new CheckEntry(clusterNow, CheckKind.Divided, _marked, 0);
    }

    /// <summary>The state was replaced, or is void: what was marked before says nothing about it.</summary>
    public void Forget()
    {
        _marked = default;
        _isOpen = false;
    }

    /// <summary>A verdict is applied.</summary>
    /// <param name="check">The verdict.</param>
    /// <param name="at">Its entry.</param>
    /// <param name="isRecovered">
    /// The log had it at the start: then states without a majority are no reason to stop, or no member could ever start
    /// again.
    /// </param>
    /// <exception cref="InvariantException">
    /// This node's state is not that of the majority, or there is none.
    /// </exception>
    public void Judge(in CheckEntry check, LogIndex at, bool isRecovered)
    {
        if (_askedAt == check.Index)
        {
            // The verdict is no change that would need another look.
            _askedAt = at;
        }

        if (check.Kind == CheckKind.Divided && !isRecovered)
        {
            throw new InvariantException(
                $"The states of {group.Name} differ between its members at entry {check.Index}, and no digest has a "
                    + $"majority; here it is {Text(_digest)}. The group has stopped on all members; "
                    + $"keep their data directories.");
        }

        if (check.Kind == CheckKind.Agreed && check.Index == _marked && check.Digest != _digest)
        {
            throw new InvariantException(
                $"The state of {group.Name} on this node differs from the majority's: after entry {check.Index} its "
                    + $"digest is {Text(_digest)}, and theirs {Text(check.Digest)}. The group has stopped here. Keep "
                    + $"a copy of the data directory, which is not changed any more, and "
                    + $"start the node with --rebuild.");
        }
    }

    private static string Text(ulong digest) =>
        digest.ToString("x16", System.Globalization.CultureInfo.InvariantCulture);

    private int VoterNumber(NodeId member)
    {
        for (int i = 0; i < options.Voters.Count; i++)
        {
            if (options.Voters[i] == member)
            {
                return i;
            }
        }

        return -1;
    }
}
