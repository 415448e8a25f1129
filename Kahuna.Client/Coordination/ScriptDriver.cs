using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Scripts;
using Kahuna.Wire.Scripts.Running;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Runs scripts whose keys lie in several buckets, or that need more than a partition's loop gives them: here, as an
/// optimistic transaction. Reads go to the leaders. The writes are committed under the condition that nothing that was
/// read has changed, and that no key has come to a prefix or bucket that was read; otherwise the script is run again.
/// Any thread.
/// </summary>
/// <param name="coordinator">Reads and commits.</param>
/// <param name="pace">Bounds the processor time; null: the caller's own.</param>
internal sealed class ScriptDriver(TransactionCoordinator coordinator, DrivePace? pace = null)
{
    /// <summary>What a run may use: some 50 ms of a processor.</summary>
    public static readonly ScriptBudget Budget = new() { Keys = Limits.TransactionItemsMax };

    private readonly ClusterConnection _connection = coordinator.Connection;

    /// <summary>Looks at everything that a run reads and writes before it does; null: all is allowed.</summary>
    public CommandGuard? Guard { get; init; }

    /// <summary>Of a node that drives for a user: whose account the writes are charged to; 0 for a client.</summary>
    public ushort Account { get; init; }

    /// <summary>Runs a script until a run is committed, or fails by itself.</summary>
    /// <param name="program">The script.</param>
    /// <param name="parameters">The values of its parameters.</param>
    /// <param name="patience">How long the caller waits; null for the request timeout.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>What it returned, and how many keys it wrote.</returns>
    public async Task<(ScriptValue Result, int Writes)> RunAsync(
        ScriptProgram program, IReadOnlyList<ScriptParameter> parameters, TimeSpan? patience, CancellationToken ct)
    {
        bool captures = _connection.CapturesContext;
        ScriptCode code = ScriptCode.Compile(program);
        CommitDeadline time = new(_connection, patience);
        for (int tries = 1; ; tries++)
        {
            long now = _connection.Time.GetUtcNow().ToUnixTimeMilliseconds();
            ScriptRun run = new(code, parameters, now, Budget);
            ScriptReads reads = new(coordinator, time, Budget, Guard);
            bool isFinished = await DriveAsync(run, reads, ct).ConfigureAwait(captures);
            IReadOnlyList<ScriptWrite> writes = isFinished ? run.Writes : [];
            if (!reads.Seen.IsTorn && await CommitAsync(reads.Seen, writes, time, ct).ConfigureAwait(captures))
            {
                return isFinished
                    ? (run.Result, writes.Count)
                    : throw TransactionErrors.ScriptFailed(run.Error.Message);
            }

            if (time.Left <= TimeSpan.Zero)
            {
                throw TransactionErrors.ScriptConflict(tries, time.Allowed);
            }

            await coordinator.PauseAsync(tries, ct).ConfigureAwait(captures);
        }
    }

    /// <summary>Runs until the script has ended. False: with an error, or what it has read cannot hold.</summary>
    private async Task<bool> DriveAsync(ScriptRun run, ScriptReads reads, CancellationToken ct)
    {
        ScriptStop stop;
        while ((stop = await AdvanceAsync(run, ct).ConfigureAwait(_connection.CapturesContext))
            is not (ScriptStop.Finished or ScriptStop.Failed))
        {
            await reads.SupplyAsync(run, stop, ct).ConfigureAwait(_connection.CapturesContext);
            if (reads.Seen.IsTorn)
            {
                return false;
            }
        }

        return stop == ScriptStop.Finished;
    }

    private async ValueTask<ScriptStop> AdvanceAsync(ScriptRun run, CancellationToken ct) => pace is null
        ? run.Advance()
        : await pace.RunAsync(run.Advance, ct).ConfigureAwait(_connection.CapturesContext);

    private static Command ListOf(ScriptWrite first, ByteBuffer body) => new()
    {
        Kind = CommandKind.Transaction,
        Durability = first.ToCommand().Durability,
        Key = first.ToCommand().Key,
        Value = body.Written,
    };

    /// <summary>
    /// Commits the writes if what was read is still so; without writes only looks whether it is. False: it is not.
    /// </summary>
    private async Task<bool> CommitAsync(
        ScriptReadSet seen, IReadOnlyList<ScriptWrite> writes, CommitDeadline time, CancellationToken ct)
    {
        if (writes.Count == 0 && seen.Count <= 1 && seen.Ranges == 0)
        {
            // A read of a single key is of one moment.
            return true;
        }

        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            TransactionBody.WriteHeader(body, seen.Count, Math.Max(1, writes.Count), 0);
            seen.WriteConditions(body);
            foreach (ScriptWrite write in writes)
            {
                CommandList.Append(body, write.ToCommand());
            }

            if (writes.Count == 0)
            {
                seen.WriteLook(body);
            }
            else
            {
                Guard?.Invoke(ListOf(writes[0], body));
            }

            CommitRequest request = new()
            {
                Body = body.WrittenMemory,
                IsVerdictEnough = true,
                Account = Account,
                Patience = time.LeftForStep,
            };
            TransactionReply reply = await coordinator.RunAsync(request, ct)
                .ConfigureAwait(_connection.CapturesContext);
            return reply.Holds;
        }
        catch (KahunaException refused) when (refused.Code == KahunaErrorCode.RangeTooLarge)
        {
            throw TransactionErrors.ScriptRangeTooLarge(seen.LastRange.Line, seen.LastRange.Column);
        }
        catch (KahunaException lost) when (writes.Count == 0 && lost.Outcome != OperationOutcome.DidNotHappen)
        {
            // Who asks for the outcome of this look would hear that it is committed, also of a script that has failed.
            throw TransactionErrors.NotLookedAt(lost);
        }
        catch (KahunaCanceledException) when (writes.Count == 0)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
        finally
        {
            body.Return();
        }
    }
}

/// <summary>Refuses a command by throwing.</summary>
/// <param name="command">Its kind, durability, key and value count.</param>
/// <exception cref="KahunaException">It is not allowed.</exception>
internal delegate void CommandGuard(scoped in Command command);
