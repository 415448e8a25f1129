using Grpc.Core;
using Kahuna.Client.Connection;

namespace Kahuna.Server.Cluster;

/// <summary>Unary calls of this node to another one. Stateless; any thread.</summary>
internal static class NodeCalls
{
    /// <summary>Makes a call to a node, as this node.</summary>
    /// <param name="forwarder">On whose connection the call is made.</param>
    /// <param name="node">The address of the node.</param>
    /// <param name="path"><c>/package.Service/Method</c>.</param>
    /// <param name="request">The message.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="NoAnswerException">No answer came, or no connection.</exception>
    /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
    public static async Task<NodeAnswer> CallAsync(
        this Forwarder forwarder, Uri node, string path, byte[] request, CancellationToken ct)
    {
        try
        {
            CallAnswer answer = await forwarder.Ports.Channel.CallAsync(node, new UnaryCall(path, request), null, ct);
            return new NodeAnswer(
                (StatusCode)answer.Status.Code,
                answer.Status.Message,
                answer.Outcome == OperationOutcome.DidNotHappen,
                answer.Message);
        }
        catch (IOException error)
        {
            throw new NoAnswerException(error is CallLostException { WasSent: true }, error);
        }
    }
}
