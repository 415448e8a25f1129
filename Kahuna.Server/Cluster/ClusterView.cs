using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Protos;

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
    private readonly List<Watcher> _watchers = [];
    private Func<int, ulong> _commitIndex = static _ => 0;
    private bool _stopping;
    private bool _votes = true;

    public ClusterView(ClusterIdentity identity, bool hasEphemeral = false)
    {
        _identity = identity;
        Layout = new GroupLayout(identity.Partitions, hasEphemeral);
        _groups = new PartitionStatus[Layout.Slots];
        _failures = new string?[Layout.Slots];
    }

    /// <summary>Raised once for each group that stops on a broken invariant.</summary>
    public event Action<GroupId, Exception>? Failed;

    /// <summary>Raised once when the log or the stored state has failed.</summary>
    public event Action<Exception>? StorageDead;

    public ClusterIdentity Identity => _identity;

    public int Partitions => _identity.Partitions;

    /// <summary>The groups and their slots.</summary>
    public GroupLayout Layout { get; }

    /// <summary>Sets the source of the groups' commit indexes, by slot. Set once, when the loops exist.</summary>
    public void ReadCommitIndexFrom(Func<int, ulong> commitIndex) => _commitIndex = commitIndex;

    public PartitionStatus Status(int slot)
    {
        lock (_lock)
        {
            return _groups[slot];
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

    /// <summary>Why a group has stopped on this node; null while it runs.</summary>
    public string? FailureOf(int slot)
    {
        lock (_lock)
        {
            return _failures[slot];
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
        };
        foreach ((NodeId id, Uri endpoint) in _identity.Nodes)
        {
            response.Nodes.Add(new Node { Id = id.Value, Endpoint = endpoint.GetLeftPart(UriPartial.Authority) });
        }

        lock (_lock)
        {
            for (int slot = 0; slot < _groups.Length; slot++)
            {
                if (!Layout.GroupOf(slot).IsMeta)
                {
                    (Layout.GroupOf(slot).IsEphemeral ? response.EphemeralPartitions : response.Partitions).Add(
                        Leader(slot));
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

    void ILeadershipSink.LeadershipChanged(int slot, PartitionStatus status)
    {
        bool isRoute;
        lock (_lock)
        {
            isRoute = !status.RoutesAs(_groups[slot]);
            _groups[slot] = status;
        }

        Notify(isRoute);
    }

    void ILeadershipSink.PartitionFailed(int slot, Exception error)
    {
        lock (_lock)
        {
            _failures[slot] ??= error.Message;
        }

        Failed?.Invoke(Layout.GroupOf(slot), error);
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

    private PartitionLeader Leader(int slot) => new()
    {
        Partition = (uint)Layout.PartitionOf(slot),
        LeaderNodeId = _groups[slot].Leader.Value,
        Term = _groups[slot].Term.Value,
        CommitIndex = _commitIndex(slot),
        Role = RoleName(_groups[slot].Role),
        Epoch = _groups[slot].Epoch,
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
