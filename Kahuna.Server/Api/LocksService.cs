using System.Buffers.Binary;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The unary lock methods for any gRPC client. Each encodes its message as a command and decodes the outcome.
/// Stateless, any thread.
/// </summary>
/// <param name="calls">Executes commands.</param>
/// <param name="partitions">Number of partitions.</param>
/// <param name="stopping">Cancelled when the node stops; ends waiting calls.</param>
internal sealed class LocksService(LockExecutor calls, int partitions, CancellationToken stopping)
    : Protos.Locks.LocksBase
{
    public override Task<AcquireLockResponse> AcquireLock(AcquireLockRequest request, ServerCallContext context)
    {
        LockCommandBuilder commands = LockCommandBuilder.Of(request);
        Command command = commands.Acquire(commands.WaitMs);
        CallNumbers.AddTo(ref command, context);
        LockAcquisition acquisition = new(
            calls,
            commands,
            command.Has(CommandFlags.Session),
            context.TimeLeft(),
            context.CancellationToken,
            stopping);
        return acquisition.RunAsync(LockExecutor.Encode(in command));
    }

    public override async Task<ExtendLockResponse> ExtendLock(ExtendLockRequest request, ServerCallContext context)
    {
        LockCommandBuilder commands = LockCommandBuilder.Of(
            request.Resource, request.Durability, request.Owner, request.LeaseMs);
        Command command = commands.Extend(request.Token);
        CallNumbers.AddTo(ref command, context);
        bool isNumbered = command.Has(CommandFlags.Session);
        NodeTime began = calls.Now;
        (OutcomeStatus status, long holder) = Read(
            await calls.ExecuteLeaseAsync(
                LockExecutor.Encode(in command), context.TimeLeft(), context.CancellationToken).ConfigureAwait(false));
        NodeTime? end = status != OutcomeStatus.Applied ? null
            : isNumbered ? await EndAsync(commands, request.Token, context).ConfigureAwait(false)
            : began + request.LeaseMs;
        if (end is { } granted)
        {
            return new ExtendLockResponse
            {
                Extended = true,
                RemainingLeaseMs = Math.Max(0, granted - calls.Now - 1),
                LeaseMsFromCall = granted - began - 1,
            };
        }

        return new ExtendLockResponse
        {
            HolderToken = status == OutcomeStatus.Applied
                ? Read(await ExecuteAsync(commands.Get(), context).ConfigureAwait(false)).Token
                : holder,
        };
    }

    public override async Task<ReleaseLockResponse> ReleaseLock(ReleaseLockRequest request, ServerCallContext context)
    {
        Command command = LockCommandBuilder.Of(request.Resource, request.Durability, request.Owner)
            .Release(request.Token, onlyPlace: false);
        CallNumbers.AddTo(ref command, context);
        (OutcomeStatus status, long token) = Read(await ExecuteAsync(command, context).ConfigureAwait(false));
        return status == OutcomeStatus.Applied
            ? new ReleaseLockResponse { Released = true }
            : new ReleaseLockResponse { HolderToken = token };
    }

    public override async Task<GetLockResponse> GetLock(GetLockRequest request, ServerCallContext context)
    {
        byte[] bytes = await ExecuteAsync(
            LockCommandBuilder.Of(request.Resource, request.Durability, "").Get(), context).ConfigureAwait(false);
        return new GetLockResponse { Lock = ToDescription(request.Resource, bytes) };
    }

    /// <summary>
    /// Lists one page. Pages read one partition after another, so that a page may be empty without being the last.
    /// </summary>
    public override async Task<ListLocksResponse> ListLocks(ListLocksRequest request, ServerCallContext context)
    {
        ListCursor cursor = ListCursor.Read(request.PageToken, partitions);
        byte[] prefix = CommandText.Encode("prefix", request.Prefix);
        Command command = PageRequest.ToCommand(CommandKind.LockList, prefix, cursor.Partition, cursor.Row);
        command.Durability = DurabilityField.Read(request.Durability);
        return ToPage(await ExecuteAsync(command, context).ConfigureAwait(false), cursor);
    }

    public override async Task<ObserveLockResponse> ObserveLock(ObserveLockRequest request, ServerCallContext context)
    {
        byte[] command = LockExecutor.Encode(LockCommandBuilder.Of(request.Resource, request.Durability, "").Observe(
            request.KnownToken, request.HoldMs));
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(
            context.CancellationToken, stopping);
        try
        {
            byte[] bytes = await calls.ExecuteAsync(command, context.TimeLeft(), either.Token).ConfigureAwait(false);
            return new ObserveLockResponse { Lock = ToDescription(request.Resource, bytes), Token = Read(bytes).Token };
        }
        catch (RpcException) when (stopping.IsCancellationRequested)
        {
            throw OutcomeErrors.Build(StatusCode.Unavailable, "The node is stopping.", OutcomeErrors.DidNotHappen);
        }
    }

    private Task<byte[]> ExecuteAsync(scoped in Command command, ServerCallContext context) =>
        calls.ExecuteAsync(LockExecutor.Encode(in command), context.TimeLeft(), context.CancellationToken);

    /// <summary>
    /// A lower bound of the end of a lease; null if it is over. Needed because a retried command returns the outcome of
    /// its first attempt.
    /// </summary>
    private async Task<NodeTime?> EndAsync(LockCommandBuilder commands, long token, ServerCallContext context)
    {
        NodeTime sent = calls.Now;
        byte[] bytes = await ExecuteAsync(commands.Await(token, 0), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found
            ? sent + (new ClusterTime(LockOutcome.TimeMsOf(in outcome)) - LockExecutor.TimeOf(in outcome))
            : null;
    }

    private static (OutcomeStatus Status, long Token) Read(byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        return (outcome.Status, LockOutcome.TokenOf(in outcome).Value);
    }

    private ListLocksResponse ToPage(byte[] bytes, ListCursor cursor)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        string next = cursor.NextToken(PageOutcome.CursorOf(in outcome), partitions);
        ListLocksResponse page = new() { NextPageToken = next };
        ReadOnlySpan<byte> rest = outcome.Value;
        while (!rest.IsEmpty)
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(rest);
            string name = Encoding.UTF8.GetString(rest.Slice(sizeof(ushort), length));
            LockSnapshot.TryRead(rest[(sizeof(ushort) + length)..], out LockSnapshot picture);
            page.Locks.Add(ToDescription(name, ref picture));
            rest = picture.Rest;
        }

        return page;
    }

    /// <summary>Null if the lock has no holder.</summary>
    private static LockDescription? ToDescription(string resource, byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found && LockSnapshot.TryRead(outcome.Value, out LockSnapshot picture)
            ? ToDescription(resource, ref picture)
            : null;
    }

    private static LockDescription ToDescription(string resource, ref LockSnapshot picture)
    {
        LockDescription description = new()
        {
            Resource = resource,
            HolderCount = picture.Holders,
            Waiting = picture.Waiters,
            Permits = picture.Permits,
        };
        while (picture.TryNext())
        {
            description.Holders.Add(new LockHolder
            {
                Owner = Encoding.UTF8.GetString(picture.Owner),
                Token = picture.Token,
                Mode = (Protos.LockMode)picture.Mode,
                RemainingLeaseMs = Math.Max(0, picture.LeftMs),
                Note = ByteString.CopyFrom(picture.Note),
            });
        }

        return description;
    }
}
