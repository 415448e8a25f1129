using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Cluster;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Executes transactions and atomic batches on any keys for a unary caller: as one command when their keys lie in one
/// group, otherwise by the coordinator. Any thread; continuations as of <see cref="UnaryExecutor"/>.
/// </summary>
internal sealed class TransactionExecutor(UnaryExecutor calls, Router router, ICoordinator coordinator)
{
    /// <summary>
    /// Calls that are coordinated at a time; further ones wait. Their replies may hold 4 MiB each and arrive whether or
    /// not the callers read them, so their number is the bound.
    /// </summary>
    private const int CoordinatedMax = 64;

    private const string SpreadNote =
        "The keys lie in several partitions or are of both durabilities, and such a transaction has no ";

    private readonly SemaphoreSlim _coordinated = new(CoordinatedMax, CoordinatedMax);

    /// <inheritdoc cref="UnaryExecutor.ExecuteAsync"/>
    public async Task<byte[]> ExecuteAsync(ByteBuffer command, TimeSpan? timeLeft, CancellationToken ct)
    {
        byte[] bytes = command.Written.ToArray();
        if (!IsSpread(bytes))
        {
            try
            {
                return await calls.ExecuteAsync(command, timeLeft, ct);
            }
            catch (RpcException stale) when (
                stale.StatusCode == StatusCode.InvalidArgument
                && stale.Status.Detail.Contains(TransactionCheck.DifferentPartitions, StringComparison.Ordinal))
            {
                // The leader knows a newer map of slots.
            }
        }
        else
        {
            command.Return();
        }

        byte[] outcome = await CoordinateAsync(bytes, timeLeft, ct);
        if (!OutcomeErrors.IsNormal((OutcomeStatus)outcome[0]))
        {
            Outcome.TryRead(outcome, out Outcome error);
            throw OutcomeErrors.ToException(error);
        }

        return outcome;
    }

    private async Task<byte[]> CoordinateAsync(byte[] bytes, TimeSpan? timeLeft, CancellationToken ct)
    {
        if (calls.Admit(bytes) is { } refusal)
        {
            return refusal;
        }

        (bool isRead, Range items) = Open(bytes);
        bool isWaiting = false;
        try
        {
            await _coordinated.WaitAsync(ct);
            isWaiting = true;
            return isRead
                ? await coordinator.ReadAsync(bytes.AsMemory(items), timeLeft, ct)
                : await coordinator.CommitAsync(bytes, timeLeft, ct);
        }
        catch (OperationCanceledException)
        {
            bool mayHaveHappened = isWaiting && !isRead;
            throw OutcomeErrors.Build(
                StatusCode.DeadlineExceeded,
                mayHaveHappened
                    ? "The deadline passed before the reply arrived; whether the transaction was applied is not known."
                    : "The deadline passed before the reply arrived.",
                mayHaveHappened ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen);
        }
        finally
        {
            if (isWaiting)
            {
                _coordinated.Release();
            }
        }
    }

    /// <summary>Where the items are; refuses what only one command can have.</summary>
    private static (bool IsRead, Range Items) Open(byte[] bytes)
    {
        Command.TryRead(bytes, out Command command);
        if (command.Has(CommandFlags.Session))
        {
            throw Invalid(SpreadNote + "number and no idempotency key. Send it without, and give it conditions that "
                + "make a repetition harmless.");
        }

        bytes.AsSpan().Overlaps(command.Value, out int at);
        return (command.IsRead, at..(at + command.Value.Length));
    }

    private bool IsSpread(byte[] bytes) => Command.TryRead(bytes, out Command command) && router.IsSpread(in command);

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);
}
