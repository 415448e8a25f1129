using System.Text.Json.Nodes;
using Google.Api;
using Google.Protobuf.Reflection;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api.Json;

/// <summary>
/// Describes the JSON calls over HTTP in OpenAPI 3.0. Built from the service descriptors, so that it matches what is
/// served. Used once by one thread.
/// </summary>
internal sealed class OpenApiDocument
{
    private readonly JsonObject _paths = [];
    private readonly JsonObject _schemas = [];

    private OpenApiDocument()
    {
    }

    /// <summary>Renders the document for these services.</summary>
    public static string Of(IEnumerable<ServiceDescriptor> services, string version)
    {
        OpenApiDocument document = new();
        foreach (MethodDescriptor method in services.SelectMany(static service => service.Methods))
        {
            if (method.GetOptions()?.GetExtension(AnnotationsExtensions.Http) is { } rule)
            {
                document.Add(method, rule);
                foreach (HttpRule other in rule.AdditionalBindings)
                {
                    document.Add(method, other);
                }
            }
        }

        document.AddError();
        return new JsonObject
        {
            ["openapi"] = "3.0.3",
            ["info"] = new JsonObject { ["title"] = "Kahuna", ["version"] = version },
            ["paths"] = document._paths,
            ["components"] = new JsonObject { ["schemas"] = document._schemas },
        }.ToJsonString();
    }

    private void Add(MethodDescriptor method, HttpRule rule)
    {
        (string verb, string pattern) = rule.PatternCase switch
        {
            HttpRule.PatternOneofCase.Get => ("get", rule.Get),
            HttpRule.PatternOneofCase.Put => ("put", rule.Put),
            HttpRule.PatternOneofCase.Post => ("post", rule.Post),
            HttpRule.PatternOneofCase.Patch => ("patch", rule.Patch),
            _ => ("delete", rule.Delete),
        };
        int at = pattern.IndexOf('{', StringComparison.Ordinal);
        int end = pattern.IndexOf('}', StringComparison.Ordinal);
        string? name = at < 0 ? null : pattern[(at + 1)..end].Split('=')[0];
        string path = name is null ? pattern : $"{pattern[..at]}{{{name}}}{pattern[(end + 1)..]}";
        JsonArray parameters = [];
        if (name is not null)
        {
            parameters.Add(Parameter(name, "path", new JsonObject { ["type"] = "string" }));
        }

        JsonObject operation = new()
        {
            ["operationId"] = name is null
                && at < 0
                && method.GetOptions().GetExtension(AnnotationsExtensions.Http) != rule
                ? method.Name + "ByName"
                : method.Name,
            ["tags"] = new JsonArray(method.Service.Name),
            ["parameters"] = parameters,
            ["responses"] = new JsonObject
            {
                ["200"] = Content("The outcome.", Reference(method.OutputType)),
                ["default"] = Content(
                    "The error, and whether the call took effect.",
                    new JsonObject { ["$ref"] = "#/components/schemas/Error" }),
            },
        };
        if (rule.Body.Length > 0)
        {
            operation["requestBody"] = Content(null, Reference(method.InputType));
        }
        else
        {
            AddQuery(parameters, method.InputType, "", name);
        }

        if (_paths[path] is not JsonObject operations)
        {
            _paths[path] = operations = [];
        }

        operations[verb] = operation;
    }

    private static JsonObject Parameter(string name, string place, JsonObject schema)
    {
        JsonObject parameter = new() { ["name"] = name, ["in"] = place, ["schema"] = schema };
        if (place == "path")
        {
            parameter["required"] = true;
        }

        return parameter;
    }

    private static JsonObject Content(string? description, JsonObject schema)
    {
        JsonObject content = new()
        {
            ["content"] = new JsonObject { ["application/json"] = new JsonObject { ["schema"] = schema } },
        };
        if (description is null)
        {
            content["required"] = true;
        }
        else
        {
            content["description"] = description;
        }

        return content;
    }

    /// <summary>Adds the query parameters; fields of nested messages get a dotted name.</summary>
    private static void AddQuery(JsonArray parameters, MessageDescriptor type, string prefix, string? inPath)
    {
        foreach (FieldDescriptor field in type.Fields.InDeclarationOrder())
        {
            if (field.FieldType == FieldType.Message)
            {
                AddQuery(parameters, field.MessageType, prefix + field.JsonName + ".", null);
            }
            else if (prefix.Length > 0 || field.Name != inPath)
            {
                parameters.Add(Parameter(prefix + field.JsonName, "query", Scalar(field)));
            }
        }
    }

    private JsonObject Reference(MessageDescriptor type)
    {
        if (type.FullName == "google.protobuf.FieldMask")
        {
            // In JSON it is one text: names with commas between.
            return new JsonObject { ["type"] = "string" };
        }

        if (!_schemas.ContainsKey(type.Name))
        {
            JsonObject properties = [];
            _schemas[type.Name] = new JsonObject { ["type"] = "object", ["properties"] = properties };
            foreach (FieldDescriptor field in type.Fields.InDeclarationOrder())
            {
                JsonObject schema = field.FieldType == FieldType.Message ? Reference(field.MessageType) : Scalar(field);
                properties[field.JsonName] = field.IsRepeated
                    ? new JsonObject { ["type"] = "array", ["items"] = schema }
                    : schema;
            }
        }

        return new JsonObject { ["$ref"] = $"#/components/schemas/{type.Name}" };
    }

    private static JsonObject Scalar(FieldDescriptor field) => field.FieldType switch
    {
        FieldType.Enum => new JsonObject
        {
            ["type"] = "string",
            ["enum"] = new JsonArray(
                [.. field.EnumType.Values.Skip(1).Select(static value => JsonValue.Create(value.Name))]),
        },
        FieldType.Bool => new JsonObject { ["type"] = "boolean" },
        FieldType.Int32 or FieldType.UInt32 => new JsonObject { ["type"] = "integer" },
        FieldType.Int64 or FieldType.UInt64 => new JsonObject { ["type"] = "string", ["format"] = "int64" },
        FieldType.Bytes => new JsonObject { ["type"] = "string", ["format"] = "byte" },
        _ => new JsonObject { ["type"] = "string" },
    };

    /// <summary>Adds the schema of what <see cref="JsonError"/> writes.</summary>
    private void AddError() => _schemas["Error"] = JsonNode.Parse("""
        {
          "type": "object",
          "properties": {
            "code": { "type": "integer", "description": "gRPC status code" },
            "message": { "type": "string" },
            "details": {
              "type": "array",
              "items": {
                "type": "object",
                "properties": {
                  "@type": { "type": "string" },
                  "reason": { "type": "string", "description": "name of the code" },
                  "domain": { "type": "string" },
                  "metadata": {
                    "type": "object",
                    "properties": { "outcome": { "type": "string", "enum": ["did-not-happen", "happened", "unknown"] } }
                  }
                }
              }
            }
          }
        }
        """);
}
