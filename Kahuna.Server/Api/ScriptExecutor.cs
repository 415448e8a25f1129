using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Cluster;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.Api;

/// <summary>
/// Executes scripts for a unary caller, as one command in the partition of their keys. A script that needs more runs as
/// a transaction which this node drives. Any thread; continuations as of <see cref="UnaryExecutor"/>.
/// </summary>
internal sealed class ScriptExecutor(UnaryExecutor calls, ICoordinator coordinator)
{
    /// <summary>
    /// Scripts that this node drives at a time; further ones wait. Each may take some 50 ms of a processor and hold 16
    /// MiB.
    /// </summary>
    private const int DrivenMax = 16;

    private readonly SemaphoreSlim _driven = new(DrivenMax, DrivenMax);

    /// <summary>Runs the script within a partition. Null: it needs more, and nothing was done.</summary>
    /// <param name="command">The encoded command; given away.</param>
    /// <param name="mayBeDriven">The script may be run as a transaction too.</param>
    /// <param name="timeLeft">Time until the caller's deadline; null: no deadline.</param>
    /// <param name="ct">Cancelled when the caller no longer waits.</param>
    public async Task<byte[]?> TryInPartitionAsync(
        ByteBuffer command, bool mayBeDriven, TimeSpan? timeLeft, CancellationToken ct)
    {
        byte[] bytes = await calls.ExecuteWantedAsync(command, timeLeft, ct, OutcomeStatus.ScriptFailed);
        Outcome.TryRead(bytes, out Outcome outcome);
        return (outcome.Status, outcome.Number) switch
        {
            (not OutcomeStatus.ScriptFailed, _) => bytes,
            (_, ScriptEnds.TooWide) => null,
            (_, ScriptEnds.NotAllowedHere) => mayBeDriven
                ? null
                : throw OutcomeErrors.ToException(outcome with { Status = OutcomeStatus.PermissionDenied }),
            _ => throw OutcomeErrors.ToException(outcome),
        };
    }

    /// <summary>Runs the script as a transaction.</summary>
    /// <param name="program">The script.</param>
    /// <param name="parameters">The values of its parameters.</param>
    /// <param name="timeLeft">Time until the caller's deadline; null: no deadline.</param>
    /// <param name="ct">Cancelled when the caller no longer waits.</param>
    public async Task<byte[]> DriveAsync(
        ScriptProgram program, IReadOnlyList<ScriptParameter> parameters, TimeSpan? timeLeft, CancellationToken ct)
    {
        bool isDriven = false;
        try
        {
            await _driven.WaitAsync(ct);
            isDriven = true;
            byte[] bytes = await coordinator.RunScriptAsync(
                program, parameters, timeLeft, calls.CallerOfScripts(), ct);
            if (!OutcomeErrors.IsNormal((OutcomeStatus)bytes[0]))
            {
                Outcome.TryRead(bytes, out Outcome error);
                throw OutcomeErrors.ToException(error);
            }

            return bytes;
        }
        catch (OperationCanceledException)
        {
            throw OutcomeErrors.Build(
                StatusCode.DeadlineExceeded,
                isDriven
                    ? "The deadline passed before the reply arrived; whether the script was applied is not known."
                    : "The deadline passed before the script was begun.",
                isDriven ? OutcomeErrors.Unknown : OutcomeErrors.DidNotHappen);
        }
        finally
        {
            if (isDriven)
            {
                _driven.Release();
            }
        }
    }
}
