namespace Kahuna.Client.Wire.Grpc;

/// <summary>Names and constants of gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md). Constants only; any thread.</summary>
internal static class GrpcProtocol
{
    /// <summary>Content type of requests and responses; a suffix such as <c>+proto</c> may follow.</summary>
    public const string ContentType = "application/grpc";

    public const string StatusHeader = "grpc-status";
    public const string MessageHeader = "grpc-message";
    public const string TimeoutHeader = "grpc-timeout";
    public const string EncodingHeader = "grpc-encoding";
    public const string AcceptEncodingHeader = "grpc-accept-encoding";

    public const string IdentityEncoding = "identity";
    public const string GzipEncoding = "gzip";

    /// <summary>What both sides can decode.</summary>
    public const string AcceptedEncodings = "identity,gzip";

    /// <summary>Before each message: a flag byte (1: compressed) and the length, 32 bits big-endian.</summary>
    public const int PrefixBytes = 5;

    /// <summary>Default limit of a received message, that of every gRPC implementation.</summary>
    public const int MaxReceiveBytesDefault = 4 << 20;

    /// <summary>True for <c>application/grpc</c>, alone or with <c>+proto</c>; other formats, such as <c>+json</c> and <c>application/grpc-web</c>, are not spoken here.</summary>
    public static bool IsGrpcContentType(string? contentType)
    {
        if (contentType is null || !contentType.StartsWith(ContentType, StringComparison.OrdinalIgnoreCase))
        {
            return false;
        }

        ReadOnlySpan<char> rest = contentType.AsSpan(ContentType.Length);
        if (rest.StartsWith("+proto", StringComparison.OrdinalIgnoreCase))
        {
            rest = rest["+proto".Length..];
        }

        return rest.IsEmpty || rest[0] is ';' or ' ';
    }

    /// <summary>True for fields of HTTP and of the protocol, which are no metadata.</summary>
    public static bool IsReservedHeader(string name) =>
        name.Length == 0
        || name[0] == ':'
        || name.StartsWith("grpc-", StringComparison.OrdinalIgnoreCase)
        || name.ToLowerInvariant() is "te" or "content-type" or "content-length" or "content-encoding" or "host" or "connection" or "transfer-encoding" or "date" or "server" or "trailer";
}
