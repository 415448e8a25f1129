namespace Kahuna.Client.Wire.Grpc;

/// <summary>What a caller may say about one call. A value; any thread.</summary>
internal readonly record struct CallOptions
{
    /// <summary>How long the call may take, from now, on both sides. Null: as long as it takes.</summary>
    public TimeSpan? Deadline { get; init; }

    /// <summary>Metadata that goes with the request.</summary>
    public GrpcMetadata? Headers { get; init; }

    /// <summary>Receives the metadata of the response, also when the call fails.</summary>
    public GrpcResponseMetadata? Response { get; init; }

    /// <summary>Messages are sent in gzip. Compressed responses are always understood.</summary>
    public bool Gzip { get; init; }

    /// <summary>Ends the call; the server is told. The call throws <see cref="OperationCanceledException"/> then.</summary>
    public CancellationToken CancellationToken { get; init; }
}
