using Kahuna.Client.Connection.Access;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Protos;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// The links to all nodes of the cluster, together with the leaders that the nodes report: the <see cref="Routes"/>.
/// Every node stays connected, so that news of a new leader arrives while the old one is silent. Owned by the
/// <see cref="ClusterConnection"/>; any thread. The gate guards the set of links and the replacement of the routes; no
/// foreign code runs under it.
/// </summary>
internal sealed class ClusterLinks
{
    private readonly ClusterConnection _connection;
    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ILogger _logger;
    private readonly DetachedLoops _loops;
    private readonly Lock _gate = new();
    private readonly List<NodeLink> _retiring = [];
    private volatile RouteTable _routes = new(ClusterMap.Empty, []);
    private volatile AccessRefusal? _refusal;
    private TaskCompletionSource _changed;
    private volatile bool _isStarted;
    private volatile bool _isStopped;
    private int _made;

    public ClusterLinks(
        ClusterConnection connection, ConnectionSettings settings, ConnectionPorts ports, ILogger logger)
    {
        _connection = connection;
        _settings = settings;
        _ports = ports;
        _logger = logger;
        _loops = new DetachedLoops(ports.Context);
        _changed = NewChange();
        ClientMeter.Add(connection);
        Authorization = new ClientAuthorization(settings.Authorization, ports.Time, ports.Context is not null);
        Sessions = new SessionPool(ports.NewSessionId, () => _routes.Map.Routes);
    }

    /// <summary>The current map and links.</summary>
    public RouteTable Routes => _routes;

    /// <summary>The sessions that number mutations.</summary>
    public SessionPool Sessions { get; }

    /// <summary>Says to the nodes who the client is.</summary>
    public ClientAuthorization Authorization { get; }

    public bool IsStopped => _isStopped;

    public bool IsStarted => _isStarted;

    /// <summary>Starts to connect to the endpoints. Only the first call has an effect.</summary>
    public void Start()
    {
        NodeLink[] links;
        lock (_gate)
        {
            if (_isStarted || _isStopped)
            {
                return;
            }

            links = [.. _settings.Endpoints.Select(MakeLink)];
            _routes = new RouteTable(ClusterMap.Empty, links);
            _isStarted = true;
        }

        foreach (NodeLink link in links)
        {
            link.Start(_loops);
        }
    }

    /// <summary>Ends all links; the task completes with their loops.</summary>
    public Task StopAsync(string reason)
    {
        NodeLink[] links;
        lock (_gate)
        {
            _isStopped = true;
            links = [.. _routes.Links, .. _retiring];
        }

        ClientMeter.Remove(_connection);

        Task ends = Task.WhenAll(links.Select(link => link.StopAsync(reason)).ToArray());
        OnChanged();
        return ends;
    }

    /// <summary>Every link, including those that only wait for outstanding replies.</summary>
    public NodeLink[] All()
    {
        lock (_gate)
        {
            return _retiring.Count == 0 ? _routes.Links : [.. _routes.Links, .. _retiring];
        }
    }

    /// <summary>
    /// Waits until a node is connected, for at most the connect timeout, or until no node lets the client in.
    /// </summary>
    public async ValueTask<RouteTable> ConnectedAsync(CancellationToken ct)
    {
        bool capture = _ports.Context is not null;
        AccessRefusal? earlier = _refusal;
        using CancellationTokenSource timeout = new(_settings.ConnectTimeout, _ports.Time);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(timeout.Token, ct);
        while (true)
        {
            if (_isStopped)
            {
                throw OperationErrors.Closed();
            }

            Task changed = Volatile.Read(ref _changed).Task;
            RouteTable routes = _routes;
            if (routes.IsAnyReady && routes.Map.Nodes.Count > 0)
            {
                return routes;
            }

            if (Objection() is { } objection)
            {
                throw OperationErrors.Untrusted(objection, mayHaveHappened: false);
            }

            if (_refusal is { } refusal && !ReferenceEquals(refusal, earlier))
            {
                throw refusal.ToException(mayHaveHappened: false);
            }

            Want();
            try
            {
                await changed.WaitAsync(limit.Token).ConfigureAwait(capture);
            }
            catch (OperationCanceledException) when (!ct.IsCancellationRequested)
            {
                throw OperationErrors.Unreachable(Reachability(), _settings.ConnectTimeout);
            }
        }
    }

    /// <summary>
    /// Why no attempt can succeed: no known node shows a trusted certificate. Null while an attempt may succeed.
    /// </summary>
    public string? Objection()
    {
        NodeLink[] links = _routes.Links;
        return links.Length > 0
            && Array.TrueForAll(links, static link => link.Ready is null && link.Objection is not null)
            ? links[0].Objection
            : null;
    }

    /// <summary>Operations wait for a node: shortens the pauses of all links that are not connected.</summary>
    public void Want()
    {
        foreach (NodeLink link in _routes.Links)
        {
            link.Want();
        }
    }

    /// <summary>A link could not connect or lost its stream.</summary>
    public void OnFailed()
    {
        AccessRefusal? refusal = NewRefusal();
        _refusal = refusal ?? _refusal;
        OnChanged();
        _connection.OnLinkFailed();
        if (refusal is not null)
        {
            _connection.OnNotLetIn(refusal.ToException);
        }
    }

    /// <summary>
    /// Why no node lets the client in: each has been tried, and one has said so. A new object each time, so that a
    /// caller sees whether it came after its call. Null while a node may, and for a node that forwards: it is not the
    /// caller who was refused then.
    /// </summary>
    private AccessRefusal? NewRefusal()
    {
        AccessRefusal? refusal = null;
        foreach (NodeLink link in _routes.Links)
        {
            if (link.Ready is not null || !link.HasFailed)
            {
                return null;
            }

            refusal ??= link.Refusal;
        }

        return refusal is null || !_settings.AsksToForward ? null : refusal with { };
    }

    /// <summary>Why no node can be reached, node by node.</summary>
    public string Reachability() =>
        string.Join(
            ", ", _routes.Links.Select(link => $"{link.Endpoint.Authority} ({link.LastFailure ?? "no answer yet"})"));

    /// <summary>A node sent its view of the cluster. Returns why its stream must end, or null.</summary>
    public string? OnMap(NodeLink from, DescribeClusterResponse view)
    {
        List<NodeLink> added = [];
        List<NodeLink> removed = [];
        lock (_gate)
        {
            if (_isStopped)
            {
                return "the client was disposed";
            }

            RouteTable routes = _routes;
            ClusterMap map = routes.Map;
            if (map.Partitions > 0 && map.ClusterId != view.ClusterId)
            {
                if (routes.AnyReady(0, except: from.Ready) is not null)
                {
                    return $"the node belongs to cluster {view.ClusterId}, the others to {map.ClusterId}";
                }

                ConnectionLog.ClusterReplaced(_logger, map.ClusterId, view.ClusterId);
                map = ClusterMap.Empty;
            }

            map = map.Merge(view);
            LogLeaders(routes.Map, map);
            List<NodeLink> links = Match(from, (int)view.NodeId, map, added, removed);
            _retiring.AddRange(removed);
            _routes = new RouteTable(map, links);
        }

        foreach (NodeLink link in removed)
        {
            link.Retire();
        }

        foreach (NodeLink link in added)
        {
            link.Start(_loops);
        }

        OnChanged();
        _connection.OnRoutesChanged();
        return null;
    }

    /// <summary>A link connected or failed: wakes the callers that wait for a node.</summary>
    public void OnChanged() =>
        Interlocked.Exchange(ref _changed, NewChange()).TrySetResult();

    /// <summary>Without a context of its own, a waiter never continues on the thread that wakes it.</summary>
    private TaskCompletionSource NewChange() =>
        new(_ports.Context is null ? TaskCreationOptions.RunContinuationsAsynchronously : TaskCreationOptions.None);

    /// <summary>A link's loop has ended.</summary>
    public void OnEnded(NodeLink link)
    {
        lock (_gate)
        {
            _retiring.Remove(link);
        }
    }

    /// <summary>
    /// Takes over the leader that a refusal names, if the map knows none or names the node that refused. A node with
    /// another version of the slots may have spoken of another partition.
    /// </summary>
    public void CorrectLeader(NodeLink from, int route, in Refusal refusal)
    {
        int hintedNodeId = refusal.HintedNodeId;
        lock (_gate)
        {
            RouteTable routes = _routes;
            if (route >= routes.Map.Routes
                || (refusal.SlotMapVersion != 0 && refusal.SlotMapVersion != routes.Map.Slots?.Version))
            {
                return;
            }

            NodeLink? known = routes.Leader(route);
            int leader = hintedNodeId == from.NodeId ? 0 : hintedNodeId;
            bool isDoubtful = known is null || known == from || known.Ready is not { IsSuspect: false };
            if (isDoubtful && routes.Map[route].LeaderNodeId != leader)
            {
                _routes = new RouteTable(routes.Map.WithLeader(route, leader), routes.Links);
            }
        }
    }

    /// <summary>Sends a refused operation again.</summary>
    public void OnRefused(NodeLink from, OperationRef reference, in Refusal refusal) =>
        _connection.OnRefused(from, reference, refusal);

    private NodeLink MakeLink(Uri endpoint) =>
        new(this, _settings, _ports, _logger, endpoint, unchecked(_ports.Seed + ++_made));

    /// <summary>
    /// Matches links to members, first by the id that a node states, then by address. Members without a link get one.
    /// Links to other nodes, and second links to one node, are retired.
    /// </summary>
    private List<NodeLink> Match(
        NodeLink from, int nodeId, ClusterMap map, List<NodeLink> added, List<NodeLink> removed)
    {
        List<NodeLink> links = [.. _routes.Links];
        from.NodeId = nodeId;
        if (!links.Contains(from))
        {
            return links;
        }

        NodeLink? twin = links.Find(link => link != from && link.NodeId == nodeId && nodeId != 0);
        if (twin is not null)
        {
            NodeLink second = twin.Ready is null ? twin : from;
            removed.Add(second);
            links.Remove(second);
        }

        foreach (MemberNode member in map.Nodes)
        {
            if (links.Exists(link => link.NodeId == member.Id))
            {
                continue;
            }

            NodeLink? known = links.Find(link => link.NodeId == 0 && link.Endpoint == member.Endpoint);
            if (known is null)
            {
                known = MakeLink(member.Endpoint);
                added.Add(known);
                links.Add(known);
            }

            known.NodeId = member.Id;
        }

        foreach (NodeLink link in links.FindAll(
            link => link != from && link.NodeId != 0 && !map.Nodes.Any(member => member.Id == link.NodeId)))
        {
            removed.Add(link);
            links.Remove(link);
        }

        return links;
    }

    private void LogLeaders(ClusterMap before, ClusterMap after)
    {
        for (int i = 0; i < after.Routes && _logger.IsEnabled(LogLevel.Information); i++)
        {
            if (after[i].LeaderNodeId != 0 && (i >= before.Routes || before[i] != after[i]))
            {
                ConnectionLog.LeaderChanged(
                    _logger,
                    i % after.Partitions,
                    i < after.Partitions ? "persistent" : "ephemeral",
                    after[i].LeaderNodeId,
                    after[i].Term);
            }
        }
    }
}
