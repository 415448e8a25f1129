using Grpc.Core;

namespace Kahuna.Server.Cluster;

/// <summary>What another node has answered to a call. Immutable.</summary>
/// <param name="Code">How it ended.</param>
/// <param name="Sentence">After an error: what the node said.</param>
/// <param name="DidNotHappen">After an error: the call has certainly changed nothing.</param>
/// <param name="Message">The answer; empty after an error.</param>
internal sealed record NodeAnswer(StatusCode Code, string Sentence, bool DidNotHappen, byte[] Message);

/// <summary>Another node has not answered a call. Immutable; any thread.</summary>
/// <param name="wasSent">The node may have carried it out.</param>
/// <param name="cause">Why no answer came.</param>
internal sealed class NoAnswerException(bool wasSent, Exception? cause = null)
    : IOException("The node has not answered.", cause)
{
    /// <summary>The node may have carried it out.</summary>
    public bool WasSent => wasSent;
}
