using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Nodes;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Google.Protobuf.WellKnownTypes;
using Google.Rpc;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using HttpResponse = Microsoft.AspNetCore.Http.HttpResponse;

namespace Kahuna.Server.Api.Json;

/// <summary>
/// Errors of JSON calls over HTTP, in the form of google.rpc.Status: code, message, and one detail with the code's name
/// and whether the call took effect. Stateless, any thread.
/// </summary>
internal static class JsonError
{
    /// <summary>The domain of the reasons, as google.rpc.ErrorInfo requires.</summary>
    private const string Domain = "kahuna.v1";

    /// <summary>If present, the gRPC package writes this instead of its own status details.</summary>
    private const string DetailsTrailer = "grpc-status-details-bin";

    private static readonly TypeRegistry s_types = TypeRegistry.FromMessages(ErrorInfo.Descriptor);
    private static readonly JsonFormatter s_formatter = new(
        new JsonFormatter.Settings(formatDefaultValues: true, s_types));

    /// <summary>The escaping of the gRPC package.</summary>
    private static readonly JsonSerializerOptions s_compact = new()
    {
        Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
    };

    /// <summary>The message types used in details.</summary>
    public static TypeRegistry Types => s_types;

    /// <summary>Adds the details to an error that the gRPC package will write.</summary>
    public static RpcException Detailed(RpcException error, bool begun)
    {
        Metadata trailers = [.. error.Trailers];
        trailers.Add(DetailsTrailer, Of(error, begun).ToByteArray());
        return new RpcException(error.Status, trailers);
    }

    /// <summary>Writes the error of a call that did not reach the gRPC package.</summary>
    public static Task WriteAsync(HttpResponse response, RpcException error, bool begun)
    {
        response.StatusCode = HttpStatus(error.StatusCode);
        response.ContentType = "application/json; charset=utf-8";
        byte[] body = Encoding.UTF8.GetBytes(
            JsonNode.Parse(s_formatter.Format(Of(error, begun)))!.ToJsonString(s_compact));
        response.ContentLength = body.Length;
        return response.Body.WriteAsync(body).AsTask();
    }

    /// <summary>Whether a failed call took effect.</summary>
    public static string Outcome(RpcException error, bool begun) =>
        error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer)
            ?? (begun ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen);

    /// <summary>The gRPC package's mapping, for the codes used here.</summary>
    public static int HttpStatus(StatusCode code) => code switch
    {
        StatusCode.Unauthenticated => StatusCodes.Status401Unauthorized,
        StatusCode.PermissionDenied => StatusCodes.Status403Forbidden,
        StatusCode.InvalidArgument => StatusCodes.Status400BadRequest,
        StatusCode.ResourceExhausted => StatusCodes.Status429TooManyRequests,
        StatusCode.DeadlineExceeded => StatusCodes.Status504GatewayTimeout,
        StatusCode.Unavailable => StatusCodes.Status503ServiceUnavailable,
        _ => StatusCodes.Status500InternalServerError,
    };

    private static Google.Rpc.Status Of(RpcException error, bool begun)
    {
        ErrorInfo info = new()
        {
            Reason = CodeReflection.Descriptor.EnumTypes[0].FindValueByNumber((int)error.StatusCode).Name,
            Domain = Domain,
            Metadata = { ["outcome"] = Outcome(error, begun) },
        };
        return new Google.Rpc.Status
        {
            Code = (int)error.StatusCode,
            Message = error.Status.Detail,
            Details = { Any.Pack(info) },
        };
    }
}
