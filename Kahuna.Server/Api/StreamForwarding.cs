using System.Diagnostics;
using Kahuna.Server.Access;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Executes stream requests whose clients cannot reach the leader, like unary calls: here or at the leader. Every
/// request gets one reply within <see cref="ForwardMsMax"/> plus its hold time; the client then tries another way. Any
/// thread.
/// </summary>
internal sealed class StreamForwarding(UnaryExecutor calls)
{
    /// <summary>Longer than an election takes, and half of the SDK's request timeout.</summary>
    private const uint ForwardMsMax = 5_000;

    /// <summary>Starts to execute one request; never throws.</summary>
    public void Begin(ForwardedRequest request) => _ = RunAsync(request);

    private async Task RunAsync(ForwardedRequest request)
    {
        // The stream's admission has checked it already, and made its session the user's own.
        CallerOfCall.Current = Caller.Node;
        Activity? activity = calls.Traces?.StartForwarding(request.Parent);
        uint forwardMs = ForwardMsMax + HoldMs(request.Command);
        request.Sink.HoldRequests(request.Command.Length);
        ByteBuffer command = ByteBuffer.Rent(request.Command.Length);
        command.Append(request.Command);
        ByteBuffer replies = ByteBuffer.Rent();
        Frame.Begin(replies, FrameKind.Replies);
        int at = replies.Length;
        Frame.BeginReply(replies, request.Number);
        try
        {
            replies.Append(await calls.OutcomeAsync(
                command,
                request.WaitMs == 0 ? forwardMs : Math.Min(request.WaitMs, forwardMs),
                CancellationToken.None));
        }
        catch (Exception end) when (end is OperationCanceledException or ObjectDisposedException)
        {
            new Outcome(OutcomeStatus.Unknown).Write(replies);
        }

        ServerTraces.Stop(activity);
        Frame.EndReply(replies, at);
        request.Sink.HoldRequests(-request.Command.Length);
        request.Sink.Deliver(replies, 1);
    }

    private static uint HoldMs(byte[] bytes)
    {
        Command.TryRead(bytes, out Command command);
        return CommandKinds.Has(command.Kind, CommandTraits.MayBeHeld)
            ? (uint)Math.Clamp(command.Number, 0, Wire.Limits.LockHoldMsMax)
            : 0;
    }
}
