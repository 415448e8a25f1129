using Grpc.Core;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Cluster;

namespace Kahuna.Server.Api;

/// <summary>
/// Carries out one command for a unary caller: through the door, and, where another node leads, through the forwarder
/// to it. Any thread. Goes on where its caller runs: nowhere in particular in a server, in the run's queue in the simulator.
/// </summary>
internal sealed class UnaryCalls(RequestDoor door, IForwarder forwarder)
{
    /// <summary>
    /// Forwarded calls at a time whose answer may be a value; further ones wait. Another node's answers come whether or not this node's callers take them, so their number is the
    /// bound: 256 values of the default size are 256 MiB, and 256 calls that take 2 ms each are 128,000 per second.
    /// </summary>
    internal const int ForwardedValuesMax = 256;

    private readonly SemaphoreSlim _forwardedValues = new(ForwardedValuesMax, ForwardedValuesMax);

    /// <summary>
    /// The outcome's bytes (Wire/Outcomes/Outcome) of a normal answer. Anything else throws <see cref="RpcException"/> with the code and
    /// the outcome trailer. The buffer is taken over.
    /// </summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="timeLeft">Until the caller's deadline; null without one.</param>
    /// <param name="ct">Cancelled when nobody waits for the answer any longer.</param>
    public async Task<byte[]> ExecuteAsync(ByteBuffer command, TimeSpan? timeLeft, CancellationToken ct)
    {
        bool isRead = (CommandKind)command.Written[0] >= CommandKind.Get;
        byte[] outcome;
        try
        {
            outcome = await OutcomeAsync(command, WaitMs(timeLeft), ct);
        }
        catch (OperationCanceledException)
        {
            throw OutcomeErrors.Build(
                StatusCode.DeadlineExceeded,
                isRead ? "The deadline passed before the answer came." : "The deadline passed before the answer came; the operation may or may not have been done.",
                isRead ? OutcomeErrors.DidNotHappen : OutcomeErrors.Unknown);
        }

        if (!OutcomeErrors.IsNormal((OutcomeStatus)outcome[0]))
        {
            Outcome.TryRead(outcome, out Outcome error);
            throw OutcomeErrors.ToException(error);
        }

        return outcome;
    }

    /// <summary>The outcome's bytes, whatever it is. The buffer is taken over.</summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="waitMs">How long it may take, here and at the leader.</param>
    /// <param name="ct">Cancelled when nobody waits for the answer any longer, which ends the wait.</param>
    /// <exception cref="OperationCanceledException">Nobody waits any longer, or the time was over, and the end is not known.</exception>
    public async Task<byte[]> OutcomeAsync(ByteBuffer command, uint waitMs, CancellationToken ct)
    {
        byte[] copy = command.Written.ToArray();
        UnaryCall call = new(door.Router.Loops, door.Room);
        long beganMs = door.Router.NowMs;
        if (!door.AcceptOne(command, call, waitMs, out OutcomeStatus status, out string? sentence))
        {
            return Error(status, sentence!);
        }

        byte[] outcome = await call.ReplyAsync(ct);
        OutcomeStatus first = (OutcomeStatus)outcome[0];
        if (first != OutcomeStatus.NotLeader && (first != OutcomeStatus.Unknown || !IsNumbered(copy)))
        {
            return outcome;
        }

        bool mayHaveHappened = first == OutcomeStatus.Unknown;
        if (!MayReturnValue(copy))
        {
            return await ForwardAsync(copy, mayHaveHappened, beganMs + waitMs, ct);
        }

        await _forwardedValues.WaitAsync(ct);
        try
        {
            return door.Room.Used > door.Room.BytesMax
                ? Error(mayHaveHappened ? OutcomeStatus.Unknown : OutcomeStatus.Busy, "The node has more answers waiting to be taken than it may hold; try again later.")
                : await ForwardAsync(copy, mayHaveHappened, beganMs + waitMs, ct);
        }
        finally
        {
            _forwardedValues.Release();
        }
    }

    private static byte[] Error(OutcomeStatus status, string sentence)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        Outcome.WriteError(buffer, status, sentence);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private Task<byte[]> ForwardAsync(byte[] command, bool mayHaveHappened, long untilMs, CancellationToken ct)
    {
        // This process may have stood still meanwhile, and the deadline's timer comes later than the answer.
        long leftMs = untilMs - door.Router.NowMs;
        if (leftMs > 0)
        {
            return forwarder.ForwardAsync(command, mayHaveHappened, TimeSpan.FromMilliseconds(leftMs), ct);
        }

        return mayHaveHappened
            ? throw new OperationCanceledException()
            : Task.FromResult(Error(OutcomeStatus.Expired, "The time limit passed before the operation was begun."));
    }

    /// <summary>Reads that are held back are many at a time, and their answers small.</summary>
    private static bool MayReturnValue(byte[] bytes) =>
        Command.TryRead(bytes, out Command command)
        && (command.Has(CommandFlags.ReturnPrevious) || (command.IsRead && command.Kind is not (CommandKind.LockAwait or CommandKind.LockObserve)));

    private static bool IsNumbered(byte[] bytes) => Command.TryRead(bytes, out Command command) && command.Has(CommandFlags.Session);

    private static uint WaitMs(TimeSpan? timeLeft) =>
        (uint)Math.Clamp(timeLeft?.TotalMilliseconds ?? double.MaxValue, 1, Client.Wire.Limits.CommandWaitMsMax);
}
