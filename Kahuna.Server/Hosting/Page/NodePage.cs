using Kahuna.Server.Api.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// A node's part in the page for operators: the page itself, what it asks for, and what the pages of other nodes ask
/// this one. Built by the node, which disposes it; any thread.
/// </summary>
internal sealed class NodePage : IDisposable
{
    private readonly NodeOptions _options;
    private readonly NodeCredential _credential;
    private readonly NodeHistory? _history;
    private readonly StateLists _lists;
    private readonly List<IDisposable> _owned = [];

    /// <summary>Begins to keep the history, if the node counts anything.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="credential">Identifies this node to the others.</param>
    /// <param name="figures">Where the figures are read.</param>
    public NodePage(NodeOptions options, NodeCredential credential, NodeFigures figures)
    {
        (_options, _credential) = (options, credential);
        _history = options.Metrics.IsOn
            ? new NodeHistory(totals => totals.Read(figures), TimeProvider.System)
            : null;
        Dictionary<NodeId, PeerStatus> others = options.Peers.Where(peer => peer.Id != options.NodeId).ToDictionary(
            static peer => peer.Id,
            peer => new PeerStatus(
                peer.Address, NodeQuestion.Queue, NodeCertificates.TrustedCaFile(options), credential));
        _owned.AddRange(others.Values);
        _lists = new StateLists(figures.View, figures.Loops, TimeProvider.System) { Others = others };
    }

    /// <summary>Renders the node's status.</summary>
    public required Func<byte[]> Status { get; init; }

    /// <summary>Renders the node's slow operations; null: it does not know them.</summary>
    public Func<byte[]>? Slow { get; init; }

    /// <inheritdoc/>
    public void Dispose()
    {
        _history?.Dispose();
        _lists.Dispose();
        _owned.ForEach(static owned => owned.Dispose());
    }

    /// <summary>Adds the paths: with <c>--ui off</c> only those that other nodes ask.</summary>
    public void Map(IEndpointRouteBuilder app)
    {
        MapQuestion(app, AccessPolicies.PageStatusPath, NodeQuestion.Status, Status);
        MapQuestion(app, AccessPolicies.PageHistoryPath, NodeQuestion.History, History);
        if (Slow is not null)
        {
            MapQuestion(app, AccessPolicies.PageSlowPath, NodeQuestion.Slow, Slow);
        }

        PageEndpoints.MapJson(app, AccessPolicies.NodeQueuePath, _lists.OwnQueueAsync);
        if (_options.Access.ServesPage)
        {
            PageEndpoints.MapFiles(app);
            PageEndpoints.MapJson(app, AccessPolicies.PageSessionsPath, _lists.SessionsAsync);
            PageEndpoints.MapJson(app, AccessPolicies.PageQueuePath, _lists.QueueAsync);
        }
    }

    private byte[] History() => _history?.Render() ?? NodeHistory.Off;

    private void MapQuestion(IEndpointRouteBuilder app, string pagePath, NodeQuestion question, Func<byte[]> render)
    {
        PageEndpoints.MapJson(app, question.Path, _ => Task.FromResult(render()));
        if (_options.Access.ServesPage)
        {
            ClusterStatus gathered = ClusterStatus.Of(_options, _credential, question, render);
            _owned.Add(gathered);
            PageEndpoints.MapJson(app, pagePath, _ => gathered.GetAsync());
        }
    }
}
