using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Frames;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api;

/// <summary>Awaits the one reply of one unary call. A new object per call; the loop completes it, the handler awaits it.</summary>
/// <param name="loops">Number of loops of the node.</param>
/// <param name="room">The room for answers that wait to leave.</param>
internal sealed class UnaryCall(int loops, ReplyRoom room) : ReplySink(loops, room)
{
    /// <summary>Where the outcome lies in the frame.</summary>
    private const int OutcomeAt = Frame.PrefixBytes + Frame.HeaderBytes + Frame.ReplyHeaderBytes;

    private readonly TaskCompletionSource<ByteBuffer> _reply = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The bytes of the outcome. Throws <see cref="OperationCanceledException"/> when nobody waits any longer.</summary>
    public async Task<byte[]> ReplyAsync(CancellationToken ct)
    {
        using CancellationTokenRegistration end = ct.UnsafeRegister(static (call, token) => ((UnaryCall)call!)._reply.TrySetCanceled(token), this);
        ByteBuffer frame = await _reply.Task;
        byte[] outcome = frame.Written[OutcomeAt..].ToArray();
        Left(frame.Length);
        frame.Return();
        return outcome;
    }

    public override bool IsClosed => _reply.Task.IsCompleted;

    public override void Deliver(ByteBuffer frame, int count)
    {
        int bytes = frame.Length;
        Waits(bytes);
        if (!_reply.TrySetResult(frame))
        {
            frame.Return();
            Left(bytes);
        }
    }
}
