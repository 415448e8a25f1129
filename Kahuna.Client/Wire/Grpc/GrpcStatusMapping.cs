using System.Net;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Security.Authentication;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>Which status stands for what HTTP, HTTP/2 and the network say (grpc/doc/http-grpc-status-mapping.md, PROTOCOL-HTTP2.md "Errors"). Pure; any thread.</summary>
internal static class GrpcStatusMapping
{
    private const long NoError = 0;
    private const long RefusedStream = 7;

    /// <summary>For a response that has no grpc-status.</summary>
    public static GrpcStatusCode FromHttp(HttpStatusCode status) => (int)status switch
    {
        400 => GrpcStatusCode.Internal,
        401 => GrpcStatusCode.Unauthenticated,
        403 => GrpcStatusCode.PermissionDenied,
        404 => GrpcStatusCode.Unimplemented,
        429 or 502 or 503 or 504 => GrpcStatusCode.Unavailable,
        _ => GrpcStatusCode.Unknown,
    };

    /// <summary>
    /// For a stream or connection that the peer ended with an HTTP/2 error code. "No error" is what a server says that stops (RFC 9113 §6.8), so another
    /// attempt is worth it: UNAVAILABLE as in grpc-java, although the table of PROTOCOL-HTTP2.md, which thinks of streams only, has INTERNAL.
    /// </summary>
    public static GrpcStatusCode FromHttp2Error(long errorCode) => errorCode switch
    {
        NoError => GrpcStatusCode.Unavailable,
        1 or 2 or 3 or 4 or 6 or 9 or 10 => GrpcStatusCode.Internal,
        RefusedStream => GrpcStatusCode.Unavailable,
        8 => GrpcStatusCode.Cancelled,
        11 => GrpcStatusCode.ResourceExhausted,
        12 => GrpcStatusCode.PermissionDenied,
        _ => GrpcStatusCode.Unknown,
    };

    /// <summary>Reads a status from headers or trailers. False when there is none.</summary>
    public static bool TryRead(HttpHeaders headers, out GrpcStatus status)
    {
        status = default;
        string? code = First(headers, GrpcProtocol.StatusHeader);
        if (code is null)
        {
            return false;
        }

        string message = GrpcMessageText.Decode(First(headers, GrpcProtocol.MessageHeader));
        status = int.TryParse(code, out int number) && Enum.IsDefined((GrpcStatusCode)number)
            ? new GrpcStatus((GrpcStatusCode)number, message)
            : new GrpcStatus(GrpcStatusCode.Unknown, $"The server answered with the status '{code}', which is not defined. {message}".TrimEnd());
        return true;
    }

    /// <summary>For a failure of the connection or of the HTTP client.</summary>
    public static GrpcException FromFailure(Exception failure)
    {
        for (Exception? e = failure; e is not null; e = e.InnerException)
        {
            switch (e)
            {
                case GrpcException known:
                    return known;
                case HttpProtocolException protocol:
                    string text = protocol.ErrorCode == NoError ? "The peer is closing the connection." : $"The peer ended the stream with HTTP/2 error {protocol.ErrorCode}.";
                    return new GrpcException(new GrpcStatus(FromHttp2Error(protocol.ErrorCode), text), inner: failure)
                    {
                        NeverProcessed = protocol.ErrorCode == RefusedStream,
                    };
            }
        }

        bool unconnected = failure is HttpRequestException
        {
            HttpRequestError: HttpRequestError.ConnectionError or HttpRequestError.NameResolutionError
                or HttpRequestError.SecureConnectionError or HttpRequestError.ProxyTunnelError,
        };
        GrpcStatusCode code = unconnected || failure is HttpRequestException or IOException or SocketException or AuthenticationException
            ? GrpcStatusCode.Unavailable
            : GrpcStatusCode.Internal;
        return new GrpcException(new GrpcStatus(code, Describe(failure)), inner: failure) { NeverProcessed = unconnected };
    }

    /// <summary>The messages of an exception and of those inside it, each once: the outer one alone often says only "see inner exception".</summary>
    private static string Describe(Exception failure)
    {
        string text = failure.Message;
        for (Exception? e = failure.InnerException; e is not null; e = e.InnerException)
        {
            if (!text.Contains(e.Message, StringComparison.Ordinal))
            {
                text = $"{text} {e.Message}";
            }
        }

        return text;
    }

    private static string? First(HttpHeaders headers, string name)
    {
        if (headers.NonValidated.TryGetValues(name, out HeaderStringValues values))
        {
            foreach (string value in values)
            {
                return value;
            }
        }

        return null;
    }
}
