using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Logs changes of leaders, and whether this node reaches a majority. A node may have hundreds of groups, so that the
/// changes between two checks make one line per leader. Owned by the node, whose timer calls <see cref="Check"/>;
/// concurrent calls return at once.
/// </summary>
internal sealed class LeadershipLog : IDisposable
{
    /// <summary>Groups named in one line, which also has their count.</summary>
    private const int NamesMax = 8;

    private readonly ClusterView _view;
    private readonly Func<int> _reached;
    private readonly ILogger _log;
    private readonly NodeId[] _leaders;
    private readonly IDisposable _watch;
    private readonly Lock _gate = new();
    private readonly int _patience;
    private int _looks;
    private int _changed = 1;
    private bool? _hasMajority;

    /// <param name="view">The cluster as this node knows it.</param>
    /// <param name="reached">Number of nodes that this node reaches, itself included; called at each check.</param>
    /// <param name="log">Receives the lines.</param>
    /// <param name="patience">Checks after which a starting node reports that it has no majority.</param>
    public LeadershipLog(ClusterView view, Func<int> reached, ILogger log, int patience)
    {
        _patience = patience;
        _view = view;
        _reached = reached;
        _log = log;
        _leaders = new NodeId[view.Layout.Count];
        _watch = view.Watch(() => Volatile.Write(ref _changed, 1));
    }

    /// <summary>Logs the changes since the last check.</summary>
    public void Check()
    {
        if (!_gate.TryEnter())
        {
            return;
        }

        try
        {
            LookAtMajority();
            if (Interlocked.Exchange(ref _changed, 0) != 0)
            {
                LookAtLeaders();
            }
        }
        finally
        {
            _gate.Exit();
        }
    }

    public void Dispose() => _watch.Dispose();

    private void LookAtMajority()
    {
        int nodes = _view.Identity.Nodes.Count;
        int needed = (nodes / 2) + 1;
        int reached = _reached();
        bool has = reached >= needed;
        if (nodes == 1 || has == _hasMajority || (!has && _hasMajority is null && ++_looks < _patience))
        {
            // A starting node has not lost a majority; it reports a missing one only if that lasts.
            return;
        }

        _hasMajority = has;
        if (has)
        {
            _log.MajorityReached(reached, nodes);
        }
        else
        {
            _log.MajorityLost(reached, nodes, needed);
        }
    }

    private void LookAtLeaders()
    {
        Dictionary<NodeId, List<int>> changed = [];
        for (int index = 0; index < _leaders.Length; index++)
        {
            NodeId leader = _view.Status(index).Leader;
            if (leader != _leaders[index])
            {
                _leaders[index] = leader;
                (changed.TryGetValue(leader, out List<int>? indexes) ? indexes : changed[leader] = []).Add(index);
            }
        }

        foreach ((NodeId leader, List<int> indexes) in changed)
        {
            string names = string.Join(", ", indexes.Take(NamesMax).Select(index => _view.Layout.GroupOf(index).Name))
                + (indexes.Count > NamesMax ? ", …" : "");
            ulong term = indexes.Max(index => _view.Status(index).Term.Value);
            if (leader == NodeId.None)
            {
                _log.LeaderLost(names, indexes.Count, term);
            }
            else
            {
                _log.Leads(leader, names, indexes.Count, term);
            }
        }
    }
}
