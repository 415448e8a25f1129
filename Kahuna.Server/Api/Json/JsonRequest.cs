using System.Buffers.Text;
using System.Globalization;
using System.Text;
using Google.Api;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Net.Http.Headers;

namespace Kahuna.Server.Api.Json;

/// <summary>
/// Validates a JSON call over HTTP before the gRPC package reads it, because the package ignores what it does not know.
/// A misspelt field is an error here, and so is a name that web server and caller may decode differently. Stateless,
/// any thread.
/// </summary>
internal static class JsonRequest
{
    private static readonly JsonParser s_parser = new(JsonParser.Settings.Default);
    private static readonly UTF8Encoding s_utf8 = new(
        encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>
    /// Largest body for messages of up to <paramref name="messageBytesMax"/> bytes: base64 makes a value a third
    /// longer, and field names are text.
    /// </summary>
    public static int BytesMax(int messageBytesMax) => (messageBytesMax / 3 * 4) + (64 << 10);

    /// <summary>Checks the path, the query and the body.</summary>
    /// <param name="request">The request.</param>
    /// <param name="body">Its whole body.</param>
    /// <param name="type">The message type it represents.</param>
    /// <param name="rule">The HTTP binding of the method.</param>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the request is malformed; the message says where.</exception>
    public static void Check(HttpRequest request, byte[] body, MessageDescriptor type, HttpRule rule)
    {
        CheckPath(request);
        bool hasBody = rule.Body.Length > 0;
        foreach ((string name, Microsoft.Extensions.Primitives.StringValues values) in request.Query)
        {
            if (hasBody)
            {
                throw Invalid($"'{Shown(name)}' is in the query; {request.Method} takes its fields from the body.");
            }

            FieldDescriptor field = Field(type, name)
                ?? throw Invalid($"This call has no query field '{Shown(name)}'.");
            CheckText(field, name, values.ToString());
        }

        // Checked without a body too: the package takes the reply's character set from the content type.
        if ((hasBody || request.ContentType is not null) && !IsJson(request.ContentType))
        {
            throw Invalid(
                $"The content type is '{Shown(request.ContentType ?? "")}'; it must be application/json, in UTF-8.");
        }

        if (!hasBody)
        {
            return;
        }

        try
        {
            s_parser.Parse(s_utf8.GetString(body), type);
        }
        catch (Exception e) when (
            e is InvalidProtocolBufferException or InvalidJsonException or DecoderFallbackException)
        {
            throw Invalid($"The body is not a valid {type.Name} in JSON: {e.Message}");
        }
    }

    /// <summary>
    /// Refuses paths whose names the web server would not return as the caller wrote them: it neither decodes an
    /// escaped slash nor keeps dot segments.
    /// </summary>
    private static void CheckPath(HttpRequest request)
    {
        string target = request.HttpContext.Features.Get<IHttpRequestFeature>()?.RawTarget ?? "";
        int end = target.IndexOf('?', StringComparison.Ordinal);
        string path = end < 0 ? target : target[..end];
        if (path.Contains('%', StringComparison.Ordinal) || path.Contains("/.", StringComparison.Ordinal))
        {
            string plain = path.Replace("%25", "", StringComparison.Ordinal);
            if (Uri.UnescapeDataString(path) != request.Path.Value
                || Uri.UnescapeDataString(plain).Contains('%', StringComparison.Ordinal))
            {
                throw Invalid(
                    "The path has an escaped slash, a dot segment or invalid UTF-8, which servers interpret "
                        + "differently. Write a slash unescaped, or pass the name in the query or the body.");
            }
        }
    }

    private static void CheckText(FieldDescriptor field, string name, string text)
    {
        bool isGood = field.FieldType switch
        {
            FieldType.Enum =>
                field.EnumType.FindValueByName(text) is not null
                    || int.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out _),
            FieldType.Int64 => long.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out _),
            FieldType.Int32 => int.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out _),
            FieldType.UInt32 => uint.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out _),
            FieldType.Bool => text is "true" or "false",
            FieldType.Bytes => Base64.IsValid(text),
            _ => true,
        };
        if (!isGood)
        {
            string known = field.FieldType == FieldType.Enum
                ? $"; known are {string.Join(", ", field.EnumType.Values.Skip(1).Select(static value => value.Name))}"
                : "";
            throw Invalid($"'{Shown(text)}' is not a value of the field '{Shown(name)}'{known}.");
        }
    }

    private static FieldDescriptor? Field(MessageDescriptor type, string path)
    {
        MessageDescriptor? inner = type;
        FieldDescriptor? field = null;
        foreach (string name in path.Split('.'))
        {
            field = inner?.Fields.InDeclarationOrder()
                .FirstOrDefault(each => each.JsonName == name || each.Name == name);
            inner = field is { FieldType: FieldType.Message } ? field.MessageType : null;
        }

        return inner is null ? field : null;
    }

    private static bool IsJson(string? contentType) =>
        MediaTypeHeaderValue.TryParse(contentType, out MediaTypeHeaderValue? type)
        && type.MediaType.Equals("application/json", StringComparison.OrdinalIgnoreCase)
        && (type.Charset.Length == 0 || type.Charset.Equals("utf-8", StringComparison.OrdinalIgnoreCase));

    /// <summary>A caller's text for use in an error message, shortened to fit a line.</summary>
    private static string Shown(string text) => text.Length > 60 ? text[..60] + "…" : text;

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);
}
