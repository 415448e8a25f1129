using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Frames;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Carries out requests of streams whose clients do not reach the leader, as a unary call is carried out: here, or at the node that leads. Every request gets one
/// reply, after <see cref="TripMsMax"/> at the latest (and after the time for which an answer may be held back): the client then looks for another way. Any thread.
/// </summary>
internal sealed class StreamForwarding(UnaryCalls calls)
{
    /// <summary>Longer than an election takes, and half of the SDK's request timeout.</summary>
    private const uint TripMsMax = 5_000;

    /// <summary>Begins to carry out one request; never throws.</summary>
    public void Begin(ForwardedRequest request) => _ = RunAsync(request);

    private async Task RunAsync(ForwardedRequest request)
    {
        uint tripMs = TripMsMax + HoldMs(request.Command);
        request.Sink.HoldRequests(request.Command.Length);
        ByteBuffer command = ByteBuffer.Rent(request.Command.Length);
        command.Append(request.Command);
        ByteBuffer replies = ByteBuffer.Rent();
        Frame.Begin(replies, FrameKind.Replies);
        int at = replies.Length;
        Frame.BeginReply(replies, request.Number);
        try
        {
            replies.Append(await calls.OutcomeAsync(command, request.WaitMs == 0 ? tripMs : Math.Min(request.WaitMs, tripMs), CancellationToken.None));
        }
        catch (Exception end) when (end is OperationCanceledException or ObjectDisposedException)
        {
            new Outcome(OutcomeStatus.Unknown).Write(replies);
        }

        Frame.EndReply(replies, at);
        request.Sink.HoldRequests(-request.Command.Length);
        request.Sink.Deliver(replies, 1);
    }

    private static uint HoldMs(byte[] bytes)
    {
        Command.TryRead(bytes, out Command command);
        return command.Kind is CommandKind.LockAwait or CommandKind.LockObserve ? (uint)Math.Clamp(command.Number, 0, Client.Wire.Limits.LockHoldMsMax) : 0;
    }
}
