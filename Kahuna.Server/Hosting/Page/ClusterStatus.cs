using System.Text.Json;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// What all nodes answer to one question as one JSON document, for the page, whose browser can ask one node only.
/// However many callers there are, one gathering is under way at a time, and its result serves for a while. A node that
/// does not answer within a second is part of the result as such. Owned by the node's page; any thread.
/// </summary>
internal sealed class ClusterStatus : IDisposable
{
    /// <summary>How long a node may take to answer; the page asks every two seconds.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(1);

    private readonly Lock _gate = new();
    private readonly NodeId _self;
    private readonly IReadOnlyList<(PeerNode Node, Func<CancellationToken, Task<byte[]>> Ask)> _nodes;
    private readonly IReadOnlyList<IDisposable> _owned;
    private readonly TimeProvider _time;
    private readonly TimeSpan _age;
    private Task<byte[]>? _latest;
    private long _gatheredAt;

    /// <param name="self">This node.</param>
    /// <param name="nodes">All nodes, and what asks each.</param>
    /// <param name="time">The clock.</param>
    /// <param name="age">How long a result is good.</param>
    /// <param name="owned">Disposed with this object.</param>
    public ClusterStatus(
        NodeId self,
        IReadOnlyList<(PeerNode Node, Func<CancellationToken, Task<byte[]>> Ask)> nodes,
        TimeProvider time,
        TimeSpan age,
        IReadOnlyList<IDisposable>? owned = null)
    {
        (_self, _nodes, _time, _age) = (self, nodes, time, age);
        _owned = owned ?? [];
    }

    /// <summary>Asks the nodes of the options.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="credential">Identifies this node to the others.</param>
    /// <param name="question">What is asked.</param>
    /// <param name="render">Renders this node's own answer.</param>
    public static ClusterStatus Of(
        NodeOptions options, NodeCredential credential, NodeQuestion question, Func<byte[]> render)
    {
        List<(PeerNode, Func<CancellationToken, Task<byte[]>>)> nodes = [];
        List<IDisposable> owned = [];
        foreach (PeerNode peer in options.Peers)
        {
            if (peer.Id == options.NodeId)
            {
                nodes.Add((peer, _ => Task.FromResult(render())));
                continue;
            }

            PeerStatus status = new(peer.Address, question, NodeCertificates.TrustedCaFile(options), credential);
            owned.Add(status);
            nodes.Add((peer, ct => status.AskAsync("", ct)));
        }

        return new ClusterStatus(options.NodeId, nodes, TimeProvider.System, question.Age, owned);
    }

    /// <summary>The newest result, or the one that is being gathered.</summary>
    public Task<byte[]> GetAsync()
    {
        lock (_gate)
        {
            if (_latest is null
                || (_latest.IsCompleted && _time.GetElapsedTime(Volatile.Read(ref _gatheredAt)) >= _age))
            {
                _latest = Task.Run(GatherAsync);
            }

            return _latest;
        }
    }

    public void Dispose()
    {
        foreach (IDisposable owned in _owned)
        {
            owned.Dispose();
        }
    }

    private async Task<byte[]> GatherAsync()
    {
        using CancellationTokenSource patience = new(s_patience, _time);
        (PeerNode Node, byte[]? Status, string? Problem)[] answers = await Task.WhenAll(
            _nodes.Select(node => AskAsync(node.Node, node.Ask, patience.Token))).ConfigureAwait(false);
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            json.WriteStartObject();
            json.WriteNumber("self", _self.Value);
            json.WriteStartArray("nodes");
            foreach ((PeerNode node, byte[]? status, string? problem) in answers)
            {
                json.WriteStartObject();
                json.WriteNumber("nodeId", node.Id.Value);
                json.WriteString("address", node.Address.GetLeftPart(UriPartial.Authority));
                json.WriteString("problem", problem);
                if (status is not null)
                {
                    json.WritePropertyName("status");
                    json.WriteRawValue(status, skipInputValidation: true);
                }

                json.WriteEndObject();
            }

            json.WriteEndArray();
            json.WriteEndObject();
        }

        Volatile.Write(ref _gatheredAt, _time.GetTimestamp());
        return stream.ToArray();
    }

    private static async Task<(PeerNode Node, byte[]? Status, string? Problem)> AskAsync(
        PeerNode node, Func<CancellationToken, Task<byte[]>> ask, CancellationToken ct)
    {
        try
        {
            return (node, await ask(ct).WaitAsync(ct).ConfigureAwait(false), null);
        }
        catch (Exception error) when (PeerStatus.ProblemOf(error) is { } problem)
        {
            return (node, null, problem);
        }
    }
}
