using System.Globalization;
using System.Text;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Json;
using Microsoft.AspNetCore.Grpc.JsonTranscoding;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Answers a refused request in its own form: gRPC and gRPC-Web with a status in the headers, JSON calls with a
/// <see cref="JsonError"/>, everything else with one line of text. Stateless.
/// </summary>
internal static class SignInRefusals
{
    /// <summary>The ways to sign in, as RFC 9110, 11.6.1, wants them named with 401.</summary>
    private static readonly string[] s_challenges = ["Basic realm=\"kahuna\", charset=\"UTF-8\"", "Bearer"];

    /// <summary>
    /// A request header of the page, which asks for user and password itself: a challenge for them would make the
    /// browser open a dialog of its own.
    /// </summary>
    internal const string PageHeader = "x-kahuna-page";

    /// <summary>Writes the answer. The request's content is not read.</summary>
    public static Task WriteAsync(HttpContext http, SignInRefusal refusal)
    {
        HttpResponse response = http.Response;
        response.Headers[OutcomeErrors.OutcomeTrailer] = OutcomeErrors.DidNotHappen;
        if (IsGrpc(http.Request))
        {
            // A response that has only headers: the status is among them (gRPC over HTTP/2, "Trailers-Only").
            response.ContentType = "application/grpc";
            response.Headers.GrpcStatus = ((int)refusal.Code).ToString(CultureInfo.InvariantCulture);
            response.Headers.GrpcMessage = Escape(refusal.Sentence);
            if (refusal.RetryAfter is { } pause)
            {
                response.Headers["grpc-retry-pushback-ms"] = ((long)pause.TotalMilliseconds).ToString(
                    CultureInfo.InvariantCulture);
            }

            return Task.CompletedTask;
        }

        response.Headers.CacheControl = "no-store";
        if (refusal.Code == StatusCode.Unauthenticated)
        {
            response.Headers.WWWAuthenticate = http.Request.Headers.ContainsKey(PageHeader)
                ? "Bearer"
                : s_challenges;
        }

        if (refusal.RetryAfter is { } after)
        {
            response.Headers.RetryAfter = ((int)Math.Ceiling(after.TotalSeconds)).ToString(
                CultureInfo.InvariantCulture);
        }

        if (http.GetEndpoint()?.Metadata.GetMetadata<GrpcJsonTranscodingMetadata>() is not null)
        {
            return JsonError.WriteAsync(
                response,
                OutcomeErrors.Build(refusal.Code, refusal.Sentence, OutcomeErrors.DidNotHappen),
                begun: false);
        }

        response.StatusCode = JsonError.HttpStatus(refusal.Code);
        response.ContentType = "text/plain; charset=utf-8";
        return HttpMethods.IsHead(http.Request.Method)
            ? Task.CompletedTask
            : response.WriteAsync(refusal.Sentence + "\n", http.RequestAborted);
    }

    private static bool IsGrpc(HttpRequest request) =>
        request.ContentType?.StartsWith("application/grpc", StringComparison.OrdinalIgnoreCase) ?? false;

    /// <summary>The percent-encoding of a gRPC message: everything but printable ASCII, and the '%' itself.</summary>
    private static string Escape(string text)
    {
        StringBuilder escaped = new(text.Length);
        foreach (byte part in Encoding.UTF8.GetBytes(text))
        {
            _ = part is >= (byte)' ' and <= (byte)'~' and not (byte)'%'
                ? escaped.Append((char)part)
                : escaped.Append('%').Append(part.ToString("X2", CultureInfo.InvariantCulture));
        }

        return escaped.ToString();
    }
}
