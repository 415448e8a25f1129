using System.Buffers.Binary;
using System.Net;
using System.Net.Http.Headers;
using Kahuna.Wire;
using Kahuna.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>One gRPC call with one message each way, over the network. Stateless; any thread.</summary>
internal static class GrpcUnaryCall
{
    private const string OutcomeTrailer = "kahuna-outcome";
    private const string DidNotHappen = "did-not-happen";

    /// <summary>Makes the call.</summary>
    /// <param name="connection">The connection that sends the request.</param>
    /// <param name="method">The node's address with <c>/package.Service/Method</c>.</param>
    /// <param name="header">A header besides those of the protocol; null for none.</param>
    /// <param name="request">The message.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="CallLostException">No answer came; it says whether the call was sent.</exception>
    public static async Task<CallAnswer> RunAsync(
        HttpMessageInvoker connection,
        Uri method,
        (string Name, string Value)? header,
        byte[] request,
        CancellationToken ct)
    {
        using HttpRequestMessage message = new(HttpMethod.Post, method)
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = new ByteArrayContent(Prefixed(request)),
        };
        message.Content.Headers.ContentType = new MediaTypeHeaderValue("application/grpc");
        message.Headers.UserAgent.Add(GrpcFrameStream.UserAgent);
        message.Headers.TryAddWithoutValidation("te", "trailers");
        if (header is { } own)
        {
            message.Headers.TryAddWithoutValidation(own.Name, own.Value);
        }

        try
        {
            using HttpResponseMessage response = await connection.SendAsync(message, ct).ConfigureAwait(false);
            if (StreamStatus.RefusalIn(response) is { } refusal)
            {
                return new CallAnswer(refusal, Happened(response), []);
            }

            byte[] body = await ReadAsync(response, ct).ConfigureAwait(false);
            StreamStatus status = StreamStatus.AtEnd(response);
            return new CallAnswer(status, Happened(response), status.IsOK ? Payload(body) : []);
        }
        catch (Exception failure) when (failure is HttpRequestException or IOException)
        {
            bool wasSent = failure is not HttpRequestException
            {
                HttpRequestError: HttpRequestError.ConnectionError or HttpRequestError.NameResolutionError
                    or HttpRequestError.SecureConnectionError,
            };
            throw new CallLostException(DisconnectReasons.Of(failure), wasSent, failure);
        }
    }

    private static byte[] Prefixed(byte[] request)
    {
        byte[] message = new byte[Frame.GrpcPrefixBytes + request.Length];
        BinaryPrimitives.WriteInt32BigEndian(message.AsSpan(1), request.Length);
        request.CopyTo(message, Frame.GrpcPrefixBytes);
        return message;
    }

    private static async Task<byte[]> ReadAsync(HttpResponseMessage response, CancellationToken ct)
    {
        using Stream stream = await response.Content.ReadAsStreamAsync(ct).ConfigureAwait(false);
        using MemoryStream body = new();
        byte[] part = new byte[16 * 1024];
        while (await stream.ReadAsync(part, ct).ConfigureAwait(false) is > 0 and int count)
        {
            body.Write(part, 0, count);
            if (body.Length > Limits.FrameBytesMax)
            {
                throw new IOException("the node's answer is too large");
            }
        }

        return body.ToArray();
    }

    private static byte[] Payload(byte[] body) =>
        body.Length >= Frame.GrpcPrefixBytes
            && body[0] == 0
            && BinaryPrimitives.ReadUInt32BigEndian(body.AsSpan(1)) == body.Length - Frame.GrpcPrefixBytes
                ? body[Frame.GrpcPrefixBytes..]
                : throw new IOException("the node's answer is not one message");

    private static OperationOutcome Happened(HttpResponseMessage response) =>
        (First(response.TrailingHeaders) ?? First(response.Headers)) == DidNotHappen
            ? OperationOutcome.DidNotHappen
            : OperationOutcome.Unknown;

    private static string? First(HttpResponseHeaders headers) =>
        headers.NonValidated.TryGetValues(OutcomeTrailer, out HeaderStringValues values) ? values.First() : null;
}

/// <summary>What is called. Immutable.</summary>
/// <param name="Path"><c>/package.Service/Method</c>.</param>
/// <param name="Request">The message.</param>
internal sealed record UnaryCall(string Path, byte[] Request);

/// <summary>How a call ended. Immutable.</summary>
/// <param name="Status">The node's status.</param>
/// <param name="Outcome">After an error: whether the call changed anything.</param>
/// <param name="Message">The answer; empty after an error.</param>
internal sealed record CallAnswer(StreamStatus Status, OperationOutcome Outcome, byte[] Message);

/// <summary>A call was not answered. Immutable; any thread.</summary>
internal sealed class CallLostException(string reason, bool wasSent, Exception? cause = null)
    : IOException(reason, cause)
{
    /// <summary>The node may have carried it out.</summary>
    public bool WasSent => wasSent;
}
