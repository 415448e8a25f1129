using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Protos;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Cluster;

/// <summary>
/// The cluster as this node knows it: its members, and the leader of each partition. The loops write it. Any thread.
/// </summary>
internal sealed class ClusterView : ILeadershipSink
{
    private readonly Lock _lock = new();
    private readonly ClusterIdentity _identity;
    private readonly PartitionStatus[] _groups;
    private readonly string?[] _failures;
    private readonly (NodeId Leader, long Changes)[] _leaders;
    private AccessRows _access = AccessRows.Empty;
    private readonly List<Watcher> _watchers = [];
    private Func<int, ulong> _commitIndex = static _ => 0;
    private Func<FeatureLevel> _featureLevel = static () => FeatureLevel.First;
    private Func<bool> _takesTraces = static () => false;
    private bool _stopping;
    private bool _votes = true;
    private volatile SlotMap _slots;
    private long _metaCaughtUpMs = long.MinValue / 2;

    public ClusterView(ClusterIdentity identity, bool hasEphemeral = false)
    {
        _identity = identity;
        Layout = new GroupLayout(identity.Partitions, hasEphemeral);
        _slots = SlotMap.Initial(identity.Partitions);
        _groups = new PartitionStatus[Layout.Count];
        _failures = new string?[Layout.Count];
        _leaders = new (NodeId Leader, long Changes)[Layout.Count];
    }

    /// <summary>Raised once for each group that stops on a broken invariant.</summary>
    public event Action<GroupId, Exception>? Failed;

    /// <summary>Raised once when the log or the stored state has failed.</summary>
    public event Action<Exception>? StorageDead;

    public ClusterIdentity Identity => _identity;

    public int Partitions => _identity.Partitions;

    /// <summary>
    /// The newest map of slots that this node knows; the initial one until the meta group's records are known.
    /// </summary>
    public SlotMap Slots => _slots;

    /// <summary>
    /// The newest records about who may do what that this node has applied; those of before its start are known before
    /// its first turn.
    /// </summary>
    public AccessRows Access => Volatile.Read(ref _access);

    /// <summary>Told when the records about who may do what have changed, on the thread of a turn.</summary>
    public event Action<AccessRows>? AccessChanged;

    /// <summary>The last time at which this node is known to have had all that the meta group had committed.</summary>
    public NodeTime MetaCaughtUpAt => new(Volatile.Read(ref _metaCaughtUpMs));

    /// <summary>The groups and their indexes.</summary>
    public GroupLayout Layout { get; }

    /// <summary>Sets the source of commit indexes, by the index of a group. Set once, when the loops exist.</summary>
    public void ReadCommitIndexFrom(Func<int, ulong> commitIndex) => _commitIndex = commitIndex;

    /// <summary>The cluster's feature level, as far as this node knows.</summary>
    public FeatureLevel FeatureLevel => _featureLevel();

    /// <summary>Sets the source of the feature level. Set once, when the loops exist.</summary>
    public void ReadFeatureLevelFrom(Func<FeatureLevel> featureLevel) => _featureLevel = featureLevel;

    /// <summary>Sets who says whether the node takes traces. Set once, before clients come.</summary>
    public void ReadTracesFrom(Func<bool> takesTraces) => _takesTraces = takesTraces;

    public PartitionStatus Status(int index)
    {
        lock (_lock)
        {
            return _groups[index];
        }
    }

    /// <summary>
    /// True if another node may be stopped: every partition can be served here or through its leader, and this node has
    /// caught up with each leader. Otherwise the reason.
    /// </summary>
    public bool IsReady(out string reason)
    {
        lock (_lock)
        {
            if (_stopping)
            {
                reason = "the node is stopping";
                return false;
            }

            if (!_votes)
            {
                reason =
                    "the node does not vote yet: its data directory is new or rebuilt, and the other nodes have not "
                        + "yet confirmed or restored it";
                return false;
            }

            for (int i = 0; i < _groups.Length; i++)
            {
                if (_failures[i] is not null)
                {
                    reason = $"{Layout.GroupOf(i).Name} has stopped on an internal error";
                    return false;
                }

                if (!_groups[i].Serving)
                {
                    reason =
                        $"{Layout.GroupOf(i).Name} has no serving "
                            + $"leader{(Layout.GroupOf(i).IsEphemeral ? ", or this node has not been restored" : "")}";
                    return false;
                }

                if (_groups[i].Lags)
                {
                    reason = $"{Layout.GroupOf(i).Name} lags: this node has not yet caught up with the leader";
                    return false;
                }
            }
        }

        reason = "ready";
        return true;
    }

    /// <summary>
    /// Sets whether this node takes part in elections. A node that does not vote is not ready, because it cannot
    /// replace a stopped one.
    /// </summary>
    public void SetVoting(bool votes)
    {
        lock (_lock)
        {
            _votes = votes;
        }

        Notify();
    }

    /// <summary>Marks the node as stopping: it accepts no new operations.</summary>
    public void BeginStop()
    {
        lock (_lock)
        {
            _stopping = true;
        }

        Notify();
    }

    /// <summary>How often another node than before came to lead a group, since this node started.</summary>
    public long LeaderChanges(int index)
    {
        lock (_lock)
        {
            return _leaders[index].Changes;
        }
    }

    /// <summary>Why a group has stopped on this node; null while it runs.</summary>
    public string? FailureOf(int index)
    {
        lock (_lock)
        {
            return _failures[index];
        }
    }

    /// <summary>Why the first stopped group of this node has stopped; null while all run.</summary>
    public string? FirstFailure
    {
        get
        {
            lock (_lock)
            {
                return Array.Find(_failures, static failure => failure is not null);
            }
        }
    }

    public DescribeClusterResponse Describe()
    {
        DescribeClusterResponse response = new()
        {
            ClusterId = _identity.ClusterId,
            NodeId = _identity.Self.Value,
            ServerVersion = _identity.Version,
            Ready = IsReady(out _),
            FeatureLevel = (uint)FeatureLevel.Value,
            TakesTraces = _takesTraces(),
        };
        foreach ((NodeId id, Uri endpoint) in _identity.Nodes)
        {
            response.Nodes.Add(new Node { Id = id.Value, Endpoint = endpoint.GetLeftPart(UriPartial.Authority) });
        }

        SlotMap slots = _slots;
        response.SlotMapVersion = slots.Version;
        foreach (SlotRange range in slots.Ranges())
        {
            response.SlotRuns.Add(
                new SlotRun { First = range.First, Last = range.Last, Partition = range.Partition });
        }

        lock (_lock)
        {
            for (int index = 0; index < _groups.Length; index++)
            {
                if (!Layout.GroupOf(index).IsMeta)
                {
                    (Layout.GroupOf(index).IsEphemeral ? response.EphemeralPartitions : response.Partitions).Add(
                        Leader(index));
                }
            }
        }

        return response;
    }

    /// <summary>
    /// Calls <paramref name="changed"/> after every change, on the thread that made it; it must neither block nor
    /// throw. Dispose the result to end the watch; a notification in progress may still arrive.
    /// </summary>
    public IDisposable Watch(Action changed) => Add(new Watcher(this, changed, routesOnly: false));

    /// <summary>
    /// Like <see cref="Watch"/>, but only for changes that affect the routes of clients
    /// (<see cref="PartitionStatus.RoutesAs"/>).
    /// </summary>
    public IDisposable WatchRoutes(Action changed) => Add(new Watcher(this, changed, routesOnly: true));

    void ILeadershipSink.LeadershipChanged(int index, PartitionStatus status)
    {
        bool isRoute;
        lock (_lock)
        {
            isRoute = !status.RoutesAs(_groups[index]);
            _groups[index] = status;
            ref (NodeId Leader, long Changes) leader = ref _leaders[index];
            if (!status.Leader.IsNone && status.Leader != leader.Leader)
            {
                leader = (status.Leader, leader.Changes + (leader.Leader.IsNone ? 0 : 1));
            }
        }

        Notify(isRoute);
    }

    void ILeadershipSink.SlotsChanged(SlotMap slots)
    {
        lock (_lock)
        {
            if (slots.Version <= _slots.Version)
            {
                return;
            }

            _slots = slots;
        }

        Notify();
    }

    void ILeadershipSink.AccessChanged(AccessRows access)
    {
        Volatile.Write(ref _access, access);
        AccessChanged?.Invoke(access);
    }

    void ILeadershipSink.MetaCaughtUp(NodeTime at) => Volatile.Write(ref _metaCaughtUpMs, at.Ms);

    void ILeadershipSink.PartitionFailed(int index, Exception error)
    {
        lock (_lock)
        {
            _failures[index] ??= error.Message;
        }

        Failed?.Invoke(Layout.GroupOf(index), error);
        Notify();
    }

    void ILeadershipSink.StorageFailed(Exception error) => StorageDead?.Invoke(error);

    public static string RoleName(RaftRole role) => role switch
    {
        RaftRole.Leader => "leader",
        RaftRole.Candidate or RaftRole.PreCandidate => "candidate",
        RaftRole.Learner => "learner",
        _ => "follower",
    };

    private PartitionLeader Leader(int index) => new()
    {
        Partition = (uint)Layout.PartitionOf(index),
        LeaderNodeId = _groups[index].Leader.Value,
        Term = _groups[index].Term.Value,
        CommitIndex = _commitIndex(index),
        Role = RoleName(_groups[index].Role),
        Epoch = _groups[index].Epoch.Value,
    };

    private Watcher Add(Watcher watcher)
    {
        lock (_lock)
        {
            _watchers.Add(watcher);
        }

        return watcher;
    }

    private void Notify(bool isRoute = true)
    {
        Watcher[] watchers;
        lock (_lock)
        {
            watchers = [.. _watchers];
        }

        foreach (Watcher watcher in watchers)
        {
            watcher.Notify(isRoute);
        }
    }

    private sealed class Watcher(ClusterView view, Action changed, bool routesOnly) : IDisposable
    {
        public void Notify(bool isRoute)
        {
            if (isRoute || !routesOnly)
            {
                changed();
            }
        }

        public void Dispose()
        {
            lock (view._lock)
            {
                view._watchers.Remove(this);
            }
        }
    }
}
