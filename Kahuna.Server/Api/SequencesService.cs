using Grpc.Core;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Server.Api;

/// <summary>The unary methods of sequences for any gRPC client: each turns its message into the one command encoding and the outcome into its reply. Stateless, any thread.</summary>
internal sealed class SequencesService(UnaryCalls calls, int partitions) : Protos.Sequences.SequencesBase
{
    public override async Task<CreateSequenceResponse> CreateSequence(CreateSequenceRequest request, ServerCallContext context)
    {
        Client.Sequences.SequenceDefinition definition = new()
        {
            Initial = request.HasInitial ? request.Initial : null,
            Increment = request.HasIncrement ? request.Increment : 1,
            Min = request.HasMin ? request.Min : null,
            Max = request.HasMax ? request.Max : null,
            Cycle = request.Cycle,
        };
        return new CreateSequenceResponse { Created = await ChangeAsync(CommandKind.SequenceCreate, request.Name, definition.ToForm(), context).ConfigureAwait(false) == OutcomeStatus.Applied };
    }

    public override async Task<NextSequenceValueResponse> NextSequenceValue(NextSequenceValueRequest request, ServerCallContext context) =>
        new() { Value = (await TakeAsync(request.Name, 1, context).ConfigureAwait(false)).First };

    public override async Task<ReserveSequenceRangeResponse> ReserveSequenceRange(ReserveSequenceRangeRequest request, ServerCallContext context)
    {
        (long first, long last) = await TakeAsync(request.Name, request.Count, context).ConfigureAwait(false);
        return new ReserveSequenceRangeResponse { First = first, Last = last };
    }

    public override async Task<GetSequenceResponse> GetSequence(GetSequenceRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.SequenceGet };
        byte[] bytes = await ExecuteAsync(ref command, request.Name, context, isNumbered: false).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found ? new GetSequenceResponse { Sequence = ToInfo(Client.Sequences.SequenceDescription.Read(request.Name, outcome.Value)) } : new GetSequenceResponse();
    }

    public override async Task<UpdateSequenceResponse> UpdateSequence(UpdateSequenceRequest request, ServerCallContext context)
    {
        Client.Sequences.SequenceChange change = new()
        {
            Increment = request.HasIncrement ? request.Increment : null,
            Min = request.HasMin ? request.Min : null,
            Max = request.HasMax ? request.Max : null,
            Cycle = request.HasCycle ? request.Cycle : null,
        };
        return new UpdateSequenceResponse { Updated = await ChangeAsync(CommandKind.SequenceUpdate, request.Name, change.ToForm(), context).ConfigureAwait(false) == OutcomeStatus.Applied };
    }

    public override async Task<DeleteSequenceResponse> DeleteSequence(DeleteSequenceRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.SequenceDelete };
        byte[] bytes = await ExecuteAsync(ref command, request.Name, context).ConfigureAwait(false);
        return new DeleteSequenceResponse { Deleted = (OutcomeStatus)bytes[0] == OutcomeStatus.Applied };
    }

    /// <summary>Pages go through one partition after the other; a page may be empty and not be the last.</summary>
    public override async Task<ListSequencesResponse> ListSequences(ListSequencesRequest request, ServerCallContext context)
    {
        ListPlace place = ListPlace.Read(request.PageToken, partitions);
        Command command = new()
        {
            Kind = CommandKind.SequenceList,
            Flags = CommandFlags.Number | CommandFlags.AtRevision,
            Number = place.Partition,
            AtRevision = place.Row,
        };
        byte[] bytes = await ExecuteAsync(ref command, request.Prefix, context, isNumbered: false).ConfigureAwait(false);
        return ToPage(bytes, place);
    }

    private ListSequencesResponse ToPage(byte[] bytes, ListPlace place)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ListSequencesResponse page = new();
        page.Sequences.AddRange(Client.Sequences.SequenceDescription.ReadPage(outcome.Value).Select(ToInfo));
        page.NextPageToken = place.TokenOfNext(outcome.Number, partitions);
        return page;
    }

    private async Task<OutcomeStatus> ChangeAsync(CommandKind kind, string name, SequenceForm form, ServerCallContext context)
    {
        byte[] value = new byte[SequenceForm.Bytes];
        form.Write(value);
        Command command = new() { Kind = kind, Value = value };
        byte[] bytes = await ExecuteAsync(ref command, name, context).ConfigureAwait(false);
        return (OutcomeStatus)bytes[0];
    }

    private async Task<(long First, long Last)> TakeAsync(string name, long count, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.SequenceNext, Flags = CommandFlags.Number, Number = count };
        byte[] bytes = await ExecuteAsync(ref command, name, context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.NotFound
            ? throw OutcomeErrors.Build(StatusCode.NotFound, $"There is no sequence \"{name}\"; create it first.", OutcomeErrors.DidNotHappen)
            : (outcome.Number, outcome.Revision);
    }

    private Task<byte[]> ExecuteAsync(ref Command command, string name, ServerCallContext context, bool isNumbered = true)
    {
        command.Key = CommandText.Encode("name", name);
        command.Durability = CommandDurability.Persistent;
        if (isNumbered)
        {
            CallNumbers.AddTo(ref command, context);
        }

        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }

    private static SequenceDescription ToInfo(Client.Sequences.SequenceDescription read)
    {
        SequenceDescription info = new() { Name = read.Name, Initial = read.Initial, Increment = read.Increment, Min = read.Min, Max = read.Max, Cycle = read.Cycle };
        if (read.Latest is { } latest)
        {
            info.Latest = latest;
        }

        return info;
    }
}
