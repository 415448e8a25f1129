using System.Text;
using Kahuna.Client.Coordination;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Runs transactions and scripts over several partitions for callers of this node, with the SDK's coordinator over the
/// forwarder's connection. Any thread.
/// </summary>
internal sealed class NodeCoordinator(Forwarder forwarder, TimeProvider time) : ICoordinator
{
    /// <summary>Scripts get at most an eighth of the processors, or half of one.</summary>
    private readonly DrivePace _pace = new(time, Math.Max(1, Environment.ProcessorCount / 4));

    public Task<byte[]> CommitAsync(ReadOnlyMemory<byte> command, TimeSpan? timeLeft, CancellationToken ct) =>
        OutcomeAsync(buffer => WriteAsync(
            forwarder.Coordinator.RunAsync(ToRequest(command, timeLeft), ct), OutcomeStatus.Applied, buffer));

    public Task<byte[]> ReadAsync(ReadOnlyMemory<byte> items, TimeSpan? timeLeft, CancellationToken ct) =>
        OutcomeAsync(buffer => WriteAsync(
            MomentReads.RunAsync(forwarder.Coordinator, items, timeLeft, ct), OutcomeStatus.Found, buffer));

    public Task<byte[]> RunScriptAsync(
        ScriptProgram program,
        IReadOnlyList<ScriptParameter> parameters,
        TimeSpan? timeLeft,
        ScriptCaller caller,
        CancellationToken ct) =>
        OutcomeAsync(async buffer =>
        {
            (ScriptValue result, int writes) = await new ScriptDriver(forwarder.Coordinator, _pace)
            {
                Guard = caller.Refuse is { } refuse ? (scoped in Command command) => Guard(refuse, in command) : null,
                Account = caller.Account,
            }.RunAsync(program, parameters, timeLeft, ct);
            ByteBuffer value = ByteBuffer.Rent();
            result.Write(value);
            new Outcome(OutcomeStatus.Applied, 0, writes) { HasValue = true, Value = value.Written }.Write(buffer);
            value.Return();
        });

    private static void Guard(CommandRefusal refuse, scoped in Command command)
    {
        if (refuse(in command, out OutcomeStatus status) is { } sentence)
        {
            throw new KahunaException(
                OutcomeStatuses.Find(status)?.Error ?? KahunaErrorCode.PermissionDenied,
                OperationOutcome.DidNotHappen,
                sentence);
        }
    }

    private static CommitRequest ToRequest(ReadOnlyMemory<byte> bytes, TimeSpan? timeLeft)
    {
        Command.TryRead(bytes.Span, out Command command);
        bytes.Span.Overlaps(command.Value, out int at);
        return new CommitRequest
        {
            Body = bytes.Slice(at, command.Value.Length),
            Fence = command.Has(CommandFlags.Fenced)
                ? new Fence(Encoding.UTF8.GetString(command.FenceName), new FencingToken(command.FenceToken))
                : null,
            Account = command.Account,
            Patience = timeLeft,
        };
    }

    private static async Task WriteAsync(Task<TransactionReply> run, OutcomeStatus good, ByteBuffer buffer)
    {
        TransactionReply reply = await run;
        new Outcome(reply.Holds ? good : OutcomeStatus.ConditionFailed)
        {
            HasValue = true,
            Value = reply.Outcomes.Span,
        }.Write(buffer);
    }

    /// <summary>Has an outcome written; an error is one, too.</summary>
    private static async Task<byte[]> OutcomeAsync(Func<ByteBuffer, Task> write)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        try
        {
            await write(buffer);
        }
        catch (KahunaException failed) when (failed.Code == KahunaErrorCode.ScriptFailed)
        {
            new Outcome(OutcomeStatus.ScriptFailed)
            {
                HasValue = true,
                Value = Encoding.UTF8.GetBytes(failed.Message.TrimEnd('.')),
            }.Write(buffer);
        }
        catch (KahunaException error)
        {
            Outcome.WriteError(buffer, OutcomeStatuses.Of(error.Code, error.Outcome), error.Message);
        }
        catch (KahunaCanceledException canceled) when (canceled.Outcome == OperationOutcome.DidNotHappen)
        {
            Outcome.WriteError(
                buffer, OutcomeStatus.Expired, "The deadline passed before the transaction was decided; nothing was "
                    + "written.");
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
