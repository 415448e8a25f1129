using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// What a leader keeps of its log for followers that are being restored: a state that is sent helps only if the log
/// behind it is there until the follower has caught up. A follower for which that would be too much is let go. Owned by
/// one <see cref="Checkpointing"/>; not thread-safe.
/// </summary>
internal sealed class HeldLogs(GroupId group, LoopOptions options, LoopPorts ports)
{
    private readonly Dictionary<NodeId, HeldLog> _held = [];
    private readonly RaftLimits _logLimits = ports.Memory.LimitLog(options.RaftLimits, ports.Partitions);

    /// <summary>Log is kept for some follower.</summary>
    public bool Any => _held.Count > 0;

    /// <summary>
    /// What the log of an ephemeral group may take up now: with a follower that is being restored as much as the state
    /// that is sent, within the group's share.
    /// </summary>
    public long MemoryBytesMax(long stateBytes) => Any
        ? Math.Max(_logLimits.CacheBytesMax,
            Math.Min(stateBytes, ports.Memory.HeldLogBytes(_logLimits, ports.Partitions)))
        : _logLimits.CacheBytesMax;

    /// <summary>
    /// The entry up to which the log may go, if that is this one as far as the stored state is concerned.
    /// </summary>
    public LogIndex OldestFrom(LogIndex stored)
    {
        LogIndex oldest = stored;
        foreach (HeldLog held in _held.Values)
        {
            oldest = held.From < oldest ? held.From : oldest;
        }

        return oldest;
    }

    /// <summary>A follower is sent a state that ends with this entry, or with a later one.</summary>
    public void Begin(NodeId follower, LogIndex from) => _held[follower] = new HeldLog(from, IsInstalled: false);

    /// <summary>A transfer has ended. True when that may let some of the log go.</summary>
    public bool Sent(NodeId follower, LogIndex index, bool installed)
    {
        if (!_held.ContainsKey(follower))
        {
            return false;
        }

        if (installed)
        {
            _held[follower] = new HeldLog(index, IsInstalled: true);
        }
        else
        {
            _held.Remove(follower);
        }

        return true;
    }

    /// <summary>Nothing is kept from now on.</summary>
    public void Clear() => _held.Clear();

    /// <summary>
    /// Lets the log go that followers have taken, and all that is kept for one that has caught up, or is so far behind
    /// that what is kept for it would reach its limit. True when that may let some of the log go.
    /// </summary>
    public bool LookAt(RaftCore core, LogIndex stored)
    {
        if (!Any)
        {
            return false;
        }

        // The walk goes on over what is changed and removed.
        foreach ((NodeId follower, HeldLog held) in _held)
        {
            LogIndex match = core.MatchIndex(follower);
            LogIndex from = held.IsInstalled && match > held.From ? match : held.From;
            if (held.IsInstalled && HasCaughtUp(core, held, match, stored))
            {
                _held.Remove(follower);
            }
            else if (IsTooMuch(core, follower, from, out long bytes))
            {
                string share = group.IsEphemeral
                    ? "a quarter of --ephemeral-limit for all partitions" : "half of --log-limit";
                ports.Report(
                    $"{group.Title}: node {follower} is {bytes >> 20} MiB of log behind, and no more is kept for it "
                        + $"({share}): it gets another snapshot when it is faster, or less is written.");
                _held.Remove(follower);
            }
            else
            {
                _held[follower] = held with { From = from };
            }
        }

        return true;
    }

    /// <summary>
    /// More is behind the follower's last entry than may be kept for it. In memory some of that is gone then.
    /// </summary>
    private bool IsTooMuch(RaftCore core, NodeId follower, LogIndex from, out long bytes)
    {
        bytes = group.IsEphemeral ? core.LogMemoryBytes : ports.Log.BytesSince(group, from);
        return group.IsEphemeral ? core.LogStart > from && core.IsActive(follower) : bytes > ports.Log.HeldBytesMax;
    }

    /// <summary>What the log keeps in any case reaches back to where the follower is.</summary>
    private bool HasCaughtUp(RaftCore core, in HeldLog held, LogIndex match, LogIndex stored) => group.IsEphemeral
        ? match >= held.From && core.LogMemoryBytes <= options.RaftLimits.CacheBytesMax
        : match >= stored && ports.Log.BytesSince(group, match) <= options.FlushLogBytes;

    /// <summary>What is kept for one follower.</summary>
    /// <param name="From">The entry before the first that it needs.</param>
    /// <param name="IsInstalled">It has the state, and gets entries.</param>
    private readonly record struct HeldLog(LogIndex From, bool IsInstalled);
}
