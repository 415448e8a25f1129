using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The key/value methods for any gRPC client. Each encodes its message as a command and decodes the outcome.
/// Stateless, any thread.
/// </summary>
internal sealed class KeyValuesService(
    UnaryExecutor calls,
    ScanPages scans,
    KeyValueBatches batches,
    RangeDeletes deletes,
    KeyValueWatches? watches = null)
    : Protos.KeyValues.KeyValuesBase
{
    public override async Task<SetKeyValueResponse> SetKeyValue(SetKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await WriteAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToSet(in outcome);
    }

    public override async Task<GetKeyValueResponse> GetKeyValue(GetKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await RunAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToGet(in outcome);
    }

    public override async Task<ExistsKeyValueResponse> ExistsKeyValue(
        ExistsKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await RunAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToExists(in outcome);
    }

    public override async Task<DeleteKeyValueResponse> DeleteKeyValue(
        DeleteKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await WriteAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToDelete(in outcome);
    }

    public override async Task<ExtendKeyValueResponse> ExtendKeyValue(
        ExtendKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await WriteAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToExtend(in outcome);
    }

    public override async Task<IncrementKeyValueResponse> IncrementKeyValue(
        IncrementKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await WriteAsync(KeyValueMessages.ToCommand(request), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return KeyValueMessages.ToIncrement(in outcome);
    }

    public override Task<ScanKeyValuesResponse> ScanKeyValues(
        ScanKeyValuesRequest request, ServerCallContext context) => scans.ReadAsync(request, context);

    public override Task<CountKeyValuesResponse> CountKeyValues(
        CountKeyValuesRequest request, ServerCallContext context) => scans.CountAsync(request, context);

    public override Task<SetManyKeyValuesResponse> SetManyKeyValues(
        SetManyKeyValuesRequest request, ServerCallContext context) => batches.SetAsync(request, context);

    public override Task<GetManyKeyValuesResponse> GetManyKeyValues(
        GetManyKeyValuesRequest request, ServerCallContext context) => batches.GetAsync(request, context);

    public override Task<ExistsManyKeyValuesResponse> ExistsManyKeyValues(
        ExistsManyKeyValuesRequest request, ServerCallContext context) => batches.ExistsAsync(request, context);

    public override Task<DeleteManyKeyValuesResponse> DeleteManyKeyValues(
        DeleteManyKeyValuesRequest request, ServerCallContext context) => batches.DeleteAsync(request, context);

    public override Task<DeleteKeyValueRangeResponse> DeleteKeyValueRange(
        DeleteKeyValueRangeRequest request, ServerCallContext context) => deletes.RunAsync(request, context);

    public override Task StreamKeyValues(
        StreamKeyValuesRequest request,
        IServerStreamWriter<StreamKeyValuesResponse> responseStream,
        ServerCallContext context) => scans.StreamAsync(request, responseStream, context);

    public override Task WatchKeyValues(
        WatchKeyValuesRequest request,
        IServerStreamWriter<WatchKeyValuesResponse> responseStream,
        ServerCallContext context) =>
        watches?.RunAsync(request, responseStream, context) ?? base.WatchKeyValues(request, responseStream, context);

    private Task<byte[]> WriteAsync(Command command, ServerCallContext context)
    {
        CallNumbers.AddTo(ref command, context);
        return RunAsync(command, context);
    }

    private Task<byte[]> RunAsync(Command command, ServerCallContext context)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }
}
