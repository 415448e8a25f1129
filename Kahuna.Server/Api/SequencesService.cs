using System.Text;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The unary sequence methods for any gRPC client. Each encodes its message as a command and decodes the outcome.
/// Stateless, any thread.
/// </summary>
internal sealed class SequencesService(UnaryExecutor calls, int partitions) : Protos.Sequences.SequencesBase
{
    public override async Task<CreateSequenceResponse> CreateSequence(
        CreateSequenceRequest request, ServerCallContext context)
    {
        SequenceBody form = SequenceBody.Of(
            request.HasInitial ? request.Initial : null,
            request.HasIncrement ? request.Increment : 1,
            request.HasMin ? request.Min : null,
            request.HasMax ? request.Max : null,
            request.Cycle);
        return new CreateSequenceResponse
        {
            Created = await ChangeAsync(CommandKind.SequenceCreate, request.Name, form, context).ConfigureAwait(false)
                == OutcomeStatus.Applied,
        };
    }

    public override async Task<NextSequenceValueResponse> NextSequenceValue(
        NextSequenceValueRequest request, ServerCallContext context) =>
        new() { Value = (await TakeAsync(request.Name, 1, context).ConfigureAwait(false)).First };

    public override async Task<ReserveSequenceRangeResponse> ReserveSequenceRange(
        ReserveSequenceRangeRequest request, ServerCallContext context)
    {
        (long first, long last) = await TakeAsync(request.Name, request.Count, context).ConfigureAwait(false);
        return new ReserveSequenceRangeResponse { First = first, Last = last };
    }

    public override async Task<GetSequenceResponse> GetSequence(GetSequenceRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.SequenceGet };
        byte[] bytes = await ExecuteAsync(ref command, request.Name, context, isNumbered: false).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found
            && SequenceSnapshot.TryRead(outcome.Value, out SequenceSnapshot read)
            ? new GetSequenceResponse { Sequence = ToInfo(request.Name, in read) }
            : new GetSequenceResponse();
    }

    public override async Task<UpdateSequenceResponse> UpdateSequence(
        UpdateSequenceRequest request, ServerCallContext context)
    {
        SequenceBody change = SequenceBody.ChangeOf(
            request.HasIncrement ? request.Increment : null,
            request.HasMin ? request.Min : null,
            request.HasMax ? request.Max : null,
            request.HasCycle ? request.Cycle : null);
        return new UpdateSequenceResponse
        {
            Updated = await ChangeAsync(CommandKind.SequenceUpdate, request.Name, change, context).ConfigureAwait(false)
                == OutcomeStatus.Applied,
        };
    }

    public override async Task<DeleteSequenceResponse> DeleteSequence(
        DeleteSequenceRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.SequenceDelete };
        byte[] bytes = await ExecuteAsync(ref command, request.Name, context).ConfigureAwait(false);
        return new DeleteSequenceResponse { Deleted = (OutcomeStatus)bytes[0] == OutcomeStatus.Applied };
    }

    /// <summary>
    /// Lists one page. Pages read one partition after another, so that a page may be empty without being the last.
    /// </summary>
    public override async Task<ListSequencesResponse> ListSequences(
        ListSequencesRequest request, ServerCallContext context)
    {
        ListCursor cursor = ListCursor.Read(request.PageToken, partitions);
        Command command = PageRequest.ToCommand(CommandKind.SequenceList, default, cursor.Partition, cursor.Row);
        byte[] bytes = await ExecuteAsync(ref command, request.Prefix, context, isNumbered: false)
            .ConfigureAwait(false);
        return ToPage(bytes, cursor);
    }

    private ListSequencesResponse ToPage(byte[] bytes, ListCursor cursor)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ListSequencesResponse page = new();
        ReadOnlySpan<byte> rest = outcome.Value;
        while (SequenceSnapshot.TryNext(ref rest, out ReadOnlySpan<byte> name, out SequenceSnapshot read))
        {
            page.Sequences.Add(ToInfo(Encoding.UTF8.GetString(name), in read));
        }

        page.NextPageToken = cursor.NextToken(PageOutcome.CursorOf(in outcome), partitions);
        return page;
    }

    private async Task<OutcomeStatus> ChangeAsync(
        CommandKind kind, string name, SequenceBody form, ServerCallContext context)
    {
        byte[] value = new byte[SequenceBody.Bytes];
        form.Write(value);
        Command command = new() { Kind = kind, Value = value };
        byte[] bytes = await ExecuteAsync(ref command, name, context).ConfigureAwait(false);
        return (OutcomeStatus)bytes[0];
    }

    private async Task<(long First, long Last)> TakeAsync(string name, long count, ServerCallContext context)
    {
        Command command = SequenceNext.ToCommand(default, count);
        byte[] bytes = await ExecuteAsync(ref command, name, context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.NotFound
            ? throw OutcomeErrors.Build(
                StatusCode.NotFound, $"There is no sequence \"{name}\"; create it first.", OutcomeErrors.DidNotHappen)
            : (SequenceOutcome.FirstOf(in outcome), SequenceOutcome.LastOf(in outcome));
    }

    private Task<byte[]> ExecuteAsync(
        ref Command command, string name, ServerCallContext context, bool isNumbered = true)
    {
        command.Key = CommandText.Encode("name", name);
        command.Durability = Durability.Persistent;
        if (isNumbered)
        {
            CallNumbers.AddTo(ref command, context);
        }

        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }

    private static SequenceDescription ToInfo(string name, in SequenceSnapshot read)
    {
        SequenceDescription info = new()
        {
            Name = name,
            Initial = read.Body.Initial,
            Increment = read.Body.Increment,
            Min = read.Body.Min,
            Max = read.Body.Max,
            Cycle = read.Body.Cycles,
        };
        if (read.Latest is { } latest)
        {
            info.Latest = latest;
        }

        return info;
    }
}
