using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Frames;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api;

/// <summary>Awaits the one reply of one unary call. A new object per call; the loop completes it, the handler awaits it.</summary>
internal sealed class UnaryCall(int loops) : ReplySink(loops)
{
    /// <summary>Where the outcome lies in the frame that <see cref="ReplyAsync"/> gives.</summary>
    public const int OutcomeAt = Frame.PrefixBytes + Frame.HeaderBytes + Frame.ReplyHeaderBytes;

    private readonly TaskCompletionSource<ByteBuffer> _reply = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The frame with the reply; the awaiter returns the buffer. Throws <see cref="OperationCanceledException"/> when nobody waits any longer.</summary>
    public async Task<ByteBuffer> ReplyAsync(CancellationToken ct)
    {
        using CancellationTokenRegistration end = ct.UnsafeRegister(static (call, token) => ((UnaryCall)call!)._reply.TrySetCanceled(token), this);
        return await _reply.Task;
    }

    public override bool IsClosed => _reply.Task.IsCompleted;

    public override void Deliver(ByteBuffer frame, int count)
    {
        if (!_reply.TrySetResult(frame))
        {
            frame.Return();
        }
    }
}
