using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;
using Value = Kahuna.Wire.Scripts.ScriptValue;

namespace Kahuna.Server.Api;

/// <summary>
/// Scripts for any gRPC client: finds out where a script runs, encodes it, and decodes its result. Any thread.
/// </summary>
internal sealed class ScriptsService(ScriptExecutor calls) : Protos.Scripts.ScriptsBase
{
    /// <summary>The deepest nesting of a parameter, as in the encoding of values.</summary>
    private const int DepthMax = 16;

    private readonly ScriptPrograms _programs = new();

    public override async Task<RunScriptResponse> RunScript(RunScriptRequest request, ServerCallContext context)
    {
        ScriptProgram program = Parse(request.Script);
        List<ScriptParameter> parameters = ToParameters(request);
        byte[]? bytes = null;
        if (Encode(program, parameters, request, context, out bool mayBeDriven) is { } command)
        {
            bytes = await calls.TryInPartitionAsync(
                command, mayBeDriven, context.TimeLeft(), context.CancellationToken).ConfigureAwait(false);
        }

        if (bytes is null && !mayBeDriven)
        {
            throw Invalid("a script with a fence, a number or an idempotency key has keys of one durability and "
                + "bucket, scans no prefix, and takes at most 20,000 steps");
        }

        bytes ??= await calls.DriveAsync(program, parameters, context.TimeLeft(), context.CancellationToken)
            .ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        ReadOnlySpan<byte> value = outcome.Value;
        return Value.TryRead(ref value, out Value result)
            ? new RunScriptResponse { Result = ToMessage(result), Writes = (int)outcome.Number }
            : throw new InvalidOperationException("The result of a script cannot be read.");
    }

    private static List<ScriptParameter> ToParameters(RunScriptRequest request)
    {
        List<ScriptParameter> parameters = new(request.Parameters.Count);
        foreach ((string name, Protos.ScriptValue value) in request.Parameters)
        {
            parameters.Add(new ScriptParameter(name, ToValue(name, value, DepthMax)));
        }

        return parameters;
    }

    /// <summary>The script as one command; null when it cannot be one.</summary>
    private static ByteBuffer? Encode(
        ScriptProgram program,
        List<ScriptParameter> parameters,
        RunScriptRequest request,
        ServerCallContext context,
        out bool mayBeDriven)
    {
        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            bool isLong = ScriptBody.IsLong(request.Script);
            if (ScriptBody.Write(body, isLong ? "" : request.Script, parameters) is { } tooLarge)
            {
                throw Invalid(tooLarge);
            }

            string? tooWide = ScriptTarget.Find(
                program,
                parameters,
                request.Key.Length == 0 ? null : request.Key,
                out string key,
                out Durability durability);
            Command command = new()
            {
                Kind = CommandKind.Script,
                Durability = durability,
                Key = Encoding.UTF8.GetBytes(key),
                Value = body.Written,
            };
            KeyValueMessages.AddFence(ref command, request.Fence);
            CallNumbers.AddTo(ref command, context);
            mayBeDriven = !command.Has(CommandFlags.Session | CommandFlags.Fenced);
            if (isLong || tooWide is not null)
            {
                return null;
            }

            ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
            command.Write(buffer);
            return buffer;
        }
        finally
        {
            body.Return();
        }
    }

    private ScriptProgram Parse(string text)
    {
        try
        {
            return _programs.Parse(text);
        }
        catch (ScriptSyntaxException wrong)
        {
            throw Invalid(wrong.Message);
        }
    }

    private static Value ToValue(string name, Protos.ScriptValue value, int depthMax)
    {
        switch (value.KindCase)
        {
            case Protos.ScriptValue.KindOneofCase.None:
                return Value.Null;
            case Protos.ScriptValue.KindOneofCase.Boolean:
                return Value.Of(value.Boolean);
            case Protos.ScriptValue.KindOneofCase.Integer:
                return Value.Of(value.Integer);
            case Protos.ScriptValue.KindOneofCase.Number when double.IsFinite(value.Number):
                return Value.Of(value.Number);
            case Protos.ScriptValue.KindOneofCase.Text:
                return Value.Of(value.Text);
            case Protos.ScriptValue.KindOneofCase.Data:
                return Value.Of(value.Data.Memory);
            case Protos.ScriptValue.KindOneofCase.Array when depthMax > 0:
                return Value.Of([.. value.Array.Items.Select(item => ToValue(name, item, depthMax - 1))]);
            default:
                throw Invalid($"parameter \"{name}\" is {Wrong(value.KindCase)}");
        }
    }

    private static string Wrong(Protos.ScriptValue.KindOneofCase kind) => kind switch
    {
        Protos.ScriptValue.KindOneofCase.Number => "not a finite number",
        Protos.ScriptValue.KindOneofCase.Array => "nested too deeply",
        _ => "an entry, which only results are",
    };

    private static Protos.ScriptValue ToMessage(Value value)
    {
        Protos.ScriptValue message = new();
        switch (value.Kind)
        {
            case ScriptValueKind.Null:
                break;
            case ScriptValueKind.Bool:
                message.Boolean = value.AsBool;
                break;
            case ScriptValueKind.Integer:
                message.Integer = value.AsInteger;
                break;
            case ScriptValueKind.Double:
                message.Number = value.AsDouble;
                break;
            case ScriptValueKind.String:
                message.Text = value.AsString;
                break;
            case ScriptValueKind.Bytes:
                message.Data = UnsafeByteOperations.UnsafeWrap(value.AsBytes);
                break;
            case ScriptValueKind.Array:
                message.Array = new ScriptArray();
                message.Array.Items.AddRange(value.Items.Select(ToMessage));
                break;
            default:
                message.Entry = new ScriptEntry
                {
                    Key = value.Key,
                    Value = ToMessage(value.Value),
                    Revision = value.Revision,
                    ExpiresInMs = value.ExpiresInMs,
                };
                break;
        }

        return message;
    }

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, Sentence(sentence), OutcomeErrors.DidNotHappen);

    private static string Sentence(string text) => text.EndsWith('.') ? text : text + ".";
}
