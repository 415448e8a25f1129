namespace Kahuna.Client.Wire.Grpc;

/// <summary>Where a call leaves the metadata of its response. Made by the caller for one call; read it when the call is over.</summary>
internal sealed class GrpcResponseMetadata
{
    /// <summary>What came before the first message.</summary>
    public GrpcMetadata Headers { get; internal set; } = GrpcMetadata.Empty;

    /// <summary>What came with the status.</summary>
    public GrpcMetadata Trailers { get; internal set; } = GrpcMetadata.Empty;
}
