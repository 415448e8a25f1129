using System.Buffers.Binary;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Server.Api;

/// <summary>The unary methods of locks for any gRPC client: each turns its message into the one command encoding and the outcome into its reply. Stateless, any thread.</summary>
/// <param name="calls">Carries commands out.</param>
/// <param name="partitions">Number of partitions.</param>
/// <param name="stopping">Ends calls that wait when the node stops.</param>
internal sealed class LocksService(LockCalls calls, int partitions, CancellationToken stopping) : Protos.Locks.LocksBase
{
    public override Task<AcquireLockResponse> AcquireLock(AcquireLockRequest request, ServerCallContext context)
    {
        LockClaim claim = LockClaim.Of(request);
        Command command = claim.Acquire(claim.WaitMs);
        CallNumbers.AddTo(ref command, context);
        LockAcquisition acquisition = new(calls, claim, command.Has(CommandFlags.Session), context.TimeLeft(), context.CancellationToken, stopping);
        return acquisition.RunAsync(LockCalls.Encode(in command));
    }

    public override async Task<ExtendLockResponse> ExtendLock(ExtendLockRequest request, ServerCallContext context)
    {
        LockClaim claim = LockClaim.Of(request.Resource, request.Durability, request.Owner, request.LeaseMs);
        Command command = claim.Extend(request.Token);
        CallNumbers.AddTo(ref command, context);
        bool isNumbered = command.Has(CommandFlags.Session);
        long beganMs = calls.NowMs;
        (OutcomeStatus status, long holder) = Read(await calls.LeaseAsync(LockCalls.Encode(in command), context.TimeLeft(), context.CancellationToken).ConfigureAwait(false));
        long? endMs = status != OutcomeStatus.Applied ? null
            : isNumbered ? await EndAsync(claim, request.Token, context).ConfigureAwait(false)
            : beganMs + request.LeaseMs;
        if (endMs is { } end)
        {
            return new ExtendLockResponse { Extended = true, RemainingLeaseMs = Math.Max(0, end - calls.NowMs - 1), LeaseMsFromCall = end - beganMs - 1 };
        }

        return new ExtendLockResponse { HolderToken = status == OutcomeStatus.Applied ? Read(await ExecuteAsync(claim.Get(), context).ConfigureAwait(false)).Token : holder };
    }

    public override async Task<ReleaseLockResponse> ReleaseLock(ReleaseLockRequest request, ServerCallContext context)
    {
        Command command = LockClaim.Of(request.Resource, request.Durability, request.Owner).Release(request.Token, onlyPlace: false);
        CallNumbers.AddTo(ref command, context);
        (OutcomeStatus status, long token) = Read(await ExecuteAsync(command, context).ConfigureAwait(false));
        return status == OutcomeStatus.Applied ? new ReleaseLockResponse { Released = true } : new ReleaseLockResponse { HolderToken = token };
    }

    public override async Task<GetLockResponse> GetLock(GetLockRequest request, ServerCallContext context)
    {
        byte[] bytes = await ExecuteAsync(LockClaim.Of(request.Resource, request.Durability, "").Get(), context).ConfigureAwait(false);
        return new GetLockResponse { Lock = ToDescription(request.Resource, bytes) };
    }

    /// <summary>Pages go through one partition after the other; a page may be empty and not be the last.</summary>
    public override async Task<ListLocksResponse> ListLocks(ListLocksRequest request, ServerCallContext context)
    {
        ListPlace place = ListPlace.Read(request.PageToken, partitions);
        Command command = new()
        {
            Kind = CommandKind.LockList,
            Durability = DurabilityField.Read(request.Durability),
            Flags = CommandFlags.Number | CommandFlags.AtRevision,
            Key = CommandText.Encode("prefix", request.Prefix),
            Number = place.Partition,
            AtRevision = place.Row,
        };
        return ToPage(await ExecuteAsync(command, context).ConfigureAwait(false), place);
    }

    public override async Task<ObserveLockResponse> ObserveLock(ObserveLockRequest request, ServerCallContext context)
    {
        byte[] command = LockCalls.Encode(LockClaim.Of(request.Resource, request.Durability, "").Observe(request.KnownToken, request.HoldMs));
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(context.CancellationToken, stopping);
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

    private Task<byte[]> ExecuteAsync(scoped in Command command, ServerCallContext context) => calls.ExecuteAsync(LockCalls.Encode(in command), context.TimeLeft(), context.CancellationToken);

    /// <summary>The moment until which a lease surely lasts; null when it is over. A repeated command is answered as its first attempt was, and says nothing of that.</summary>
    private async Task<long?> EndAsync(LockClaim claim, long token, ServerCallContext context)
    {
        long sentMs = calls.NowMs;
        byte[] bytes = await ExecuteAsync(claim.Await(token, 0), context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found ? sentMs + outcome.Number - LockCalls.ClusterMs(in outcome) : null;
    }

    private static (OutcomeStatus Status, long Token) Read(byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        return (outcome.Status, outcome.Revision);
    }

    private ListLocksResponse ToPage(byte[] bytes, ListPlace place)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ListLocksResponse page = new() { NextPageToken = place.TokenOfNext(outcome.Number, partitions) };
        ReadOnlySpan<byte> rest = outcome.Value;
        while (!rest.IsEmpty)
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(rest);
            string name = Encoding.UTF8.GetString(rest.Slice(sizeof(ushort), length));
            LockPicture.TryRead(rest[(sizeof(ushort) + length)..], out LockPicture picture);
            page.Locks.Add(ToDescription(name, ref picture));
            rest = picture.Rest;
        }

        return page;
    }

    /// <summary>Null when nobody has the lock.</summary>
    private static LockDescription? ToDescription(string resource, byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        return outcome.Status == OutcomeStatus.Found && LockPicture.TryRead(outcome.Value, out LockPicture picture) ? ToDescription(resource, ref picture) : null;
    }

    private static LockDescription ToDescription(string resource, ref LockPicture picture)
    {
        LockDescription description = new() { Resource = resource, HolderCount = picture.Holders, Waiting = picture.Waiters, Permits = picture.Permits };
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
