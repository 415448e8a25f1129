using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Nodes;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Google.Protobuf.WellKnownTypes;
using Google.Rpc;
using Grpc.Core;
using HttpResponse = Microsoft.AspNetCore.Http.HttpResponse;

namespace Kahuna.Server.Api.Json;

/// <summary>
/// Errors of calls of JSON over HTTP, in the form of google.rpc.Status: code and message, and in its one detail the code's name and what the call has done. Stateless, any thread.
/// </summary>
internal static class JsonError
{
    /// <summary>Whose reasons these are, as google.rpc.ErrorInfo wants to know.</summary>
    private const string Domain = "kahuna.v1";

    /// <summary>The gRPC package writes this in place of what it would make of a status.</summary>
    private const string DetailsTrailer = "grpc-status-details-bin";

    private static readonly TypeRegistry s_types = TypeRegistry.FromMessages(ErrorInfo.Descriptor);
    private static readonly JsonFormatter s_formatter = new(new JsonFormatter.Settings(formatDefaultValues: true, s_types));

    /// <summary>As the gRPC package writes.</summary>
    private static readonly JsonSerializerOptions s_compact = new() { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping };

    /// <summary>The messages in details.</summary>
    public static TypeRegistry Types => s_types;

    /// <summary>The same error with its details, for a call that ends in the gRPC package.</summary>
    public static RpcException Detailed(RpcException error, bool begun)
    {
        Metadata trailers = [.. error.Trailers];
        trailers.Add(DetailsTrailer, Of(error, begun).ToByteArray());
        return new RpcException(error.Status, trailers);
    }

    /// <summary>Answers a call that did not come to the gRPC package.</summary>
    public static Task WriteAsync(HttpResponse response, RpcException error, bool begun)
    {
        response.StatusCode = HttpStatus(error.StatusCode);
        response.ContentType = "application/json; charset=utf-8";
        byte[] body = Encoding.UTF8.GetBytes(JsonNode.Parse(s_formatter.Format(Of(error, begun)))!.ToJsonString(s_compact));
        response.ContentLength = body.Length;
        return response.Body.WriteAsync(body).AsTask();
    }

    /// <summary>What a call has done that ended with an error.</summary>
    public static string Outcome(RpcException error, bool begun) =>
        error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) ?? (begun ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen);

    private static Google.Rpc.Status Of(RpcException error, bool begun) => new()
    {
        Code = (int)error.StatusCode,
        Message = error.Status.Detail,
        Details = { Any.Pack(new ErrorInfo { Reason = CodeReflection.Descriptor.EnumTypes[0].FindValueByNumber((int)error.StatusCode).Name, Domain = Domain, Metadata = { ["outcome"] = Outcome(error, begun) } }) },
    };

    /// <summary>The package's table, for the codes that come from here.</summary>
    private static int HttpStatus(StatusCode code) => code switch
    {
        StatusCode.InvalidArgument => StatusCodes.Status400BadRequest,
        StatusCode.ResourceExhausted => StatusCodes.Status429TooManyRequests,
        StatusCode.DeadlineExceeded => StatusCodes.Status504GatewayTimeout,
        StatusCode.Unavailable => StatusCodes.Status503ServiceUnavailable,
        _ => StatusCodes.Status500InternalServerError,
    };
}
