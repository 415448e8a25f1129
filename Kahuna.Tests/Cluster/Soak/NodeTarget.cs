using System.Globalization;
using Google.Protobuf;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client.Connection;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Linearizability;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// One node, called with plain gRPC as from any other language: no other node is tried and nothing repeated, so that a
/// node that was stopped still finds the calls when it wakes up, and one that does not lead forwards them. Owns its
/// channel; any thread.
/// </summary>
internal sealed class NodeTarget : ISoakTarget
{
    /// <summary>
    /// Shorter than most pauses: a stopped node that wakes up finds calls that were made when another one led already.
    /// </summary>
    private static readonly TimeSpan s_deadline = TimeSpan.FromSeconds(1);

    /// <summary>
    /// So long a caller leaves its node alone that cannot be reached: it answers at once, and its refusals would use up
    /// the keys.
    /// </summary>
    private static readonly TimeSpan s_unreachablePause = TimeSpan.FromMilliseconds(200);

    private readonly GrpcChannel _channel;

    public NodeTarget(NodeProcess node, string trustedCaFile)
    {
        Uri address = new(node.Url);
        _channel = TestChannels.To(
            address, ServerTrust.For(address, trustedCaFile, insecure: false), connectTimeout: TimeSpan.FromSeconds(1));
    }

    public async Task<SoakAnswer> RunAsync(HistoryOperation operation, CancellationToken abandoned)
    {
        try
        {
            return SoakAnswer.Ok(await CallAsync(operation, abandoned));
        }
        catch (RpcException refused) when (
            operation.Kind == OperationKind.Increment
                && refused.StatusCode is StatusCode.FailedPrecondition or StatusCode.OutOfRange)
        {
            return SoakAnswer.Ok(new OperationResult { Affirmed = false });
        }
        catch (RpcException failure) when (IsExplained(failure.StatusCode))
        {
            if (failure.IsUnsent())
            {
                await Task.Delay(s_unreachablePause, CancellationToken.None);
            }

            bool surely = operation.IsRead
                || failure.IsUnsent()
                || failure.Trailers.GetValue("kahuna-outcome") == "did-not-happen";
            return SoakAnswer.Failed($"gRPC {failure.StatusCode}", surely);
        }
        catch (RpcException failure) when (
            failure.StatusCode == StatusCode.Cancelled && abandoned.IsCancellationRequested)
        {
            return SoakAnswer.Failed("gRPC Canceled", operation.IsRead);
        }
    }

    public ValueTask DisposeAsync()
    {
        _channel.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>A node that is killed or stopped explains these, and nothing else.</summary>
    private static bool IsExplained(StatusCode code) =>
        code is StatusCode.Unavailable or StatusCode.DeadlineExceeded or StatusCode.ResourceExhausted;

    private async Task<OperationResult> CallAsync(HistoryOperation operation, CancellationToken ct)
    {
        OperationArguments asked = operation.Arguments;
        switch (operation.Kind)
        {
            case OperationKind.Set:
                SetKeyValueRequest write = new()
                {
                    Key = operation.Key,
                    Durability = Protos.Durability.Persistent,
                    Value = ValueOf(asked.Value),
                    Conditions = ConditionsOf(asked),
                };
                if (asked.TtlMs is { } ttlMs)
                {
                    write.TtlMs = ttlMs;
                }

                SetKeyValueResponse set = await SendAsync("SetKeyValue", write, SetKeyValueResponse.Parser, ct);
                return new OperationResult { Affirmed = set.Set, Revision = set.Revision };
            case OperationKind.Get:
                GetKeyValueResponse got = await SendAsync(
                    "GetKeyValue",
                    new GetKeyValueRequest { Key = operation.Key, Durability = Protos.Durability.Persistent },
                    GetKeyValueResponse.Parser,
                    ct);
                return new OperationResult
                {
                    Affirmed = got.Found,
                    HasValue = got.Found,
                    Value = got.Found && got.Value.HasData ? got.Value.Data.ToStringUtf8() : null,
                    Revision = got.Revision,
                };
            case OperationKind.Exists:
                ExistsKeyValueResponse exists = await SendAsync(
                    "ExistsKeyValue",
                    new ExistsKeyValueRequest { Key = operation.Key, Durability = Protos.Durability.Persistent },
                    ExistsKeyValueResponse.Parser,
                    ct);
                return new OperationResult { Affirmed = exists.Found, Revision = exists.Revision };
            case OperationKind.Delete:
                DeleteKeyValueRequest removal = new()
                {
                    Key = operation.Key,
                    Durability = Protos.Durability.Persistent,
                    Conditions = ConditionsOf(asked),
                };
                DeleteKeyValueResponse deleted = await SendAsync(
                    "DeleteKeyValue", removal, DeleteKeyValueResponse.Parser, ct);
                return new OperationResult { Affirmed = deleted.Deleted, Revision = deleted.Revision };
            case OperationKind.Extend:
                ExtendKeyValueRequest extension = new()
                {
                    Key = operation.Key,
                    Durability = Protos.Durability.Persistent,
                    TtlMs = asked.TtlMs!.Value,
                    Conditions = ConditionsOf(asked),
                };
                ExtendKeyValueResponse extended = await SendAsync(
                    "ExtendKeyValue", extension, ExtendKeyValueResponse.Parser, ct);
                return new OperationResult { Affirmed = extended.Extended, Revision = extended.Revision };
            default:
                IncrementKeyValueRequest increment =
                    new() { Key = operation.Key, Durability = Protos.Durability.Persistent, Amount = asked.By };
                IncrementKeyValueResponse sum = await SendAsync(
                    "IncrementKeyValue", increment, IncrementKeyValueResponse.Parser, ct);
                return new OperationResult
                {
                    Affirmed = true,
                    HasValue = true,
                    Value = sum.Value.ToString(CultureInfo.InvariantCulture),
                    Revision = sum.Revision,
                };
        }
    }

    private Task<TReply> SendAsync<TRequest, TReply>(
        string method, TRequest request, MessageParser<TReply> parser, CancellationToken ct)
        where TRequest : IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        _channel.UnaryAsync($"/kahuna.v1.KeyValues/{method}", request, parser, TestCalls.Within(s_deadline, ct: ct));

    private static Value ValueOf(string? text) =>
        text is null ? new Value() : new Value { Data = ByteString.CopyFromUtf8(text) };

    private static Conditions ConditionsOf(OperationArguments asked)
    {
        Conditions conditions = new()
        {
            IfAbsent = asked.OnlyIfAbsent,
            IfPresent = asked.OnlyIfPresent,
            IfValue = asked.OnlyIfValue ? ValueOf(asked.ComparedValue) : null,
        };
        if (asked.OnlyIfRevision is { } revision)
        {
            conditions.IfRevision = revision;
        }

        return conditions;
    }
}
