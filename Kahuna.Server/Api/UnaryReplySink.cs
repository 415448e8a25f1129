using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;

namespace Kahuna.Server.Api;

/// <summary>
/// Receives the reply of one unary call. Created per call; the loop completes it, the handler awaits it.
/// </summary>
internal sealed class UnaryReplySink : ReplySink
{
    /// <summary>Offset of the outcome in the frame.</summary>
    private const int OutcomeAt = Frame.PrefixBytes + Frame.HeaderBytes + Frame.ReplyHeaderBytes;

    private readonly ushort _trace;
    private readonly TaskCompletionSource<ByteBuffer> _reply = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <param name="loops">Number of loops of the node.</param>
    /// <param name="room">The budget for unsent replies.</param>
    /// <param name="trace">Where the call's trace is kept; 0: it is not traced.</param>
    public UnaryReplySink(int loops, ReplyRoom room, ushort trace = 0)
        : base(loops, room)
    {
        _trace = trace;
        HasTraces = trace != 0;
    }

    /// <summary>
    /// Returns the bytes of the outcome. Throws <see cref="OperationCanceledException"/> if the caller no longer waits.
    /// </summary>
    public async Task<byte[]> ReplyAsync(CancellationToken ct)
    {
        using CancellationTokenRegistration end = ct.UnsafeRegister(
            static (call, token) => ((UnaryReplySink)call!)._reply.TrySetCanceled(token), this);
        ByteBuffer frame = await _reply.Task;
        byte[] outcome = frame.Written[OutcomeAt..].ToArray();
        Left(frame.Length);
        frame.Return();
        return outcome;
    }

    public override ushort TraceOf(uint number) => _trace;

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
