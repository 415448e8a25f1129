using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Grpc;
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
    /// The outcome's bytes (Wire/Outcomes/Outcome) of a normal answer. Anything else throws <see cref="GrpcException"/> with the code and
    /// the outcome trailer. The buffer is taken over.
    /// </summary>
    /// <param name="command">The encoded command.</param>
    /// <param name="timeLeft">Until the caller's deadline; null without one.</param>
    /// <param name="ct">Cancelled when nobody waits for the answer any longer.</param>
    public async Task<byte[]> ExecuteAsync(ByteBuffer command, TimeSpan? timeLeft, CancellationToken ct)
    {
        byte[] copy = command.Written.ToArray();
        bool isRead = (CommandKind)copy[0] >= CommandKind.Get;
        UnaryCall call = new(door.Router.Loops);
        uint waitMs = WaitMs(timeLeft);
        long beganMs = door.Router.NowMs;
        if (!door.AcceptOne(command, call, waitMs, out OutcomeStatus status, out string? sentence))
        {
            throw OutcomeErrors.ToException(status, sentence!);
        }

        byte[] outcome;
        try
        {
            ByteBuffer frame = await call.ReplyAsync(ct);
            outcome = frame.Written[UnaryCall.OutcomeAt..].ToArray();
            frame.Return();
            OutcomeStatus first = (OutcomeStatus)outcome[0];
            if (first == OutcomeStatus.NotLeader || (first == OutcomeStatus.Unknown && IsNumbered(copy)))
            {
                // This process may have stood still meanwhile, and the deadline's timer comes later than the answer.
                long leftMs = waitMs - (door.Router.NowMs - beganMs);
                if (leftMs <= 0)
                {
                    throw first == OutcomeStatus.NotLeader ? OutcomeErrors.ToException(OutcomeStatus.Expired, "The time limit passed before the operation was begun.") : new OperationCanceledException();
                }

                outcome = await forwarder.ForwardAsync(copy, mayHaveHappened: first == OutcomeStatus.Unknown, TimeSpan.FromMilliseconds(leftMs), ct);
            }
        }
        catch (OperationCanceledException)
        {
            throw OutcomeErrors.Build(
                GrpcStatusCode.DeadlineExceeded,
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

    private static bool IsNumbered(byte[] bytes) => Command.TryRead(bytes, out Command command) && command.Has(CommandFlags.Session);

    private static uint WaitMs(TimeSpan? timeLeft) =>
        (uint)Math.Clamp(timeLeft?.TotalMilliseconds ?? double.MaxValue, 1, Client.Wire.Limits.CommandWaitMsMax);
}
