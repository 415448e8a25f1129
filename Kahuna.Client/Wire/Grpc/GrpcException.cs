namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// A call that ended with another status than OK. A client throws it for what a server answered and for what the
/// connection did; a server's handler throws it to answer with that status. Immutable; any thread.
/// </summary>
internal sealed class GrpcException : Exception
{
    public GrpcException(GrpcStatusCode code, string message)
        : this(new GrpcStatus(code, message), null, null)
    {
    }

    public GrpcException(GrpcStatus status, GrpcMetadata? trailers = null, Exception? inner = null)
        : base(status.ToString(), inner)
    {
        Status = status;
        Trailers = trailers ?? GrpcMetadata.Empty;
    }

    /// <summary>Code and message.</summary>
    public GrpcStatus Status { get; }

    /// <summary>The code of the status.</summary>
    public GrpcStatusCode Code => Status.Code;

    /// <summary>What the server added to the status, without the fields of the protocol itself.</summary>
    public GrpcMetadata Trailers { get; }

    /// <summary>
    /// The request surely reached no handler: no connection could be made, or the server refused the stream before it
    /// looked at it. False says nothing.
    /// </summary>
    public bool NeverProcessed { get; init; }
}
