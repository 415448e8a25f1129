using System.Globalization;
using System.Net.Http.Headers;

namespace Kahuna.Client.Connection;

/// <summary>
/// How a node ended a stream: a gRPC status code (grpc/doc/statuscodes.md) and a message. A value; any thread.
/// </summary>
internal readonly record struct StreamStatus(int Code, string Message)
{
    private const int Unknown = 2;

    private static readonly string[] s_names =
    [
        "OK", "Cancelled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
        "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented",
        "Internal", "Unavailable", "DataLoss", "Unauthenticated",
    ];

    /// <summary>The node ended the stream without an error.</summary>
    public bool IsOK => Code == 0;

    /// <summary>
    /// The status of a response that was read to its end: from its trailers, or from its headers if there is no body.
    /// </summary>
    public static StreamStatus AtEnd(HttpResponseMessage response) =>
        In(response.Headers)
            ?? In(response.TrailingHeaders)
            ?? new StreamStatus(Unknown, "The response ended without a grpc-status.");

    /// <summary>Why a response with the given headers is not an open gRPC stream; null when it is one.</summary>
    public static StreamStatus? RefusalIn(HttpResponseMessage response)
    {
        if (In(response.Headers) is { } status)
        {
            return status.IsOK ? null : status;
        }

        int http = (int)response.StatusCode;
        if (http != 200)
        {
            // grpc/doc/http-grpc-status-mapping.md
            int code = http switch
            {
                400 => 13,
                401 => 16,
                403 => 7,
                404 => 12,
                429 or 502 or 503 or 504 => 14,
                _ => Unknown,
            };
            return new StreamStatus(code, $"The server answered with HTTP status {http}, not with gRPC.");
        }

        MediaTypeHeaderValue? type = response.Content.Headers.ContentType;
        bool isGrpc = type?.MediaType?.ToLowerInvariant() is "application/grpc" or "application/grpc+proto";
        return isGrpc
            ? null
            : new StreamStatus(Unknown, $"The server answered with the content type '{type}', not with gRPC.");
    }

    /// <inheritdoc/>
    public override string ToString() => Message.Length == 0 ? s_names[Code] : $"{s_names[Code]}: {Message}";

    private static StreamStatus? In(HttpResponseHeaders headers)
    {
        string message = Uri.UnescapeDataString(First(headers, "grpc-message") ?? "");
        return First(headers, "grpc-status") is not { } code ? null
            : int.TryParse(code, CultureInfo.InvariantCulture, out int number) && number >= 0 && number < s_names.Length
                ? new StreamStatus(number, message)
            : new StreamStatus(
                Unknown, $"The server answered with the status '{code}', which is not defined. {message}".TrimEnd());
    }

    private static string? First(HttpResponseHeaders headers, string name) =>
        headers.NonValidated.TryGetValues(name, out HeaderStringValues values) ? values.First() : null;
}

/// <summary>A node refused to open a stream. Immutable; any thread.</summary>
internal sealed class StreamRefusedException(StreamStatus status) : IOException(status.ToString())
{
    /// <summary>The node's reason.</summary>
    public StreamStatus Status => status;
}
