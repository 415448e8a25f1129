using Kahuna.Client.Wire.Outcomes;
using Kahuna.Client.Wire.Protos;

namespace Kahuna.Client.Connection;

/// <summary>What a <see cref="NodeStream"/> tells its owner. Called on the stream's loops, never under its lock.</summary>
internal interface IStreamOwner
{
    /// <summary>The node sent its view of the cluster; the first one completes the handshake.</summary>
    void OnMap(NodeStream stream, DescribeClusterResponse map);

    /// <summary>The node stops; the stream takes nothing new.</summary>
    void OnGoAway(NodeStream stream);

    /// <summary>The stream has ended and takes nothing any more; what it held is given back after this.</summary>
    void OnEnded(NodeStream stream);

    /// <summary>An operation is to be sent again; <paramref name="status"/> says why.</summary>
    void OnRefused(OperationRef reference, OutcomeStatus status, int hintedNodeId);

    /// <summary>Names the node and why its stream ended, for whoever reads a failure.</summary>
    string NameLoss(string reason);
}
