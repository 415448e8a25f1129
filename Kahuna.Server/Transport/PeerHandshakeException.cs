namespace Kahuna.Server.Transport;

/// <summary>A connection did not become a link. <paramref name="byOther"/>: the other side refused; otherwise this one did. The message is for the log.</summary>
internal sealed class PeerHandshakeException(PeerRefusal reason, string message, bool byOther = false) : Exception(message)
{
    public PeerRefusal Reason => reason;

    public bool ByOther => byOther;
}
