using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// The answers that a loop gives in one turn, gathered so that each client gets one frame. Owned by one loop; not
/// thread-safe.
/// </summary>
/// <param name="loop">The loop; it hears when answers have left, where it asks for that.</param>
/// <param name="trace">Hears what answers rest on before they leave.</param>
internal sealed class ReplyFrames(IRoomListener loop, IPartitionTrace? trace)
{
    private readonly int _loop = loop.Number;
    private readonly List<ReplySink> _sinks = [];

    /// <summary>
    /// Opens one reply in the sink's frame of this turn; the caller appends the outcome and calls
    /// <see cref="EndReply"/>.
    /// </summary>
    public ByteBuffer BeginReply(ReplySink sink, uint number, out int at)
    {
        ByteBuffer? frame = sink.Open[_loop];
        if (frame is null)
        {
            frame = ByteBuffer.Rent(16 * 1024);
            Frame.Begin(frame, FrameKind.Replies);
            sink.Open[_loop] = frame;
            sink.OpenCount[_loop] = 0;
            _sinks.Add(sink);
        }

        at = frame.Length;
        Frame.BeginReply(frame, number);
        return frame;
    }

    /// <summary>
    /// Ends the reply that was begun at <paramref name="at"/>. A frame that has become large leaves at once.
    /// </summary>
    public void EndReply(ReplySink sink, ByteBuffer frame, int at)
    {
        InvariantException.Require(frame == sink.Open[_loop] && at < frame.Length,
            "a reply ends in the frame that it was begun in");
        Frame.EndReply(frame, at);
        sink.OpenCount[_loop]++;
        if (frame.Length >= Wire.Limits.FrameBytesTarget)
        {
            sink.Open[_loop] = null;
            _sinks.Remove(sink);
            trace?.Flush();
            sink.Deliver(frame, sink.OpenCount[_loop]);
        }
    }

    /// <summary>A read's answer of <paramref name="answerBytes"/> may be made for the client now.</summary>
    public bool HasRoom(ReplySink sink, int answerBytes) =>
        sink.HasRoomForRead(sink.Open[_loop]?.Length ?? 0, answerBytes);

    /// <summary>The sink tells the loop, once, when something has left.</summary>
    public void TellWhenLeft(ReplySink sink) => sink.TellWhenLeft(loop);

    /// <summary>
    /// A rule is broken in the middle of an answer: nothing of what was begun may stay in the client's frame.
    /// </summary>
    public void GiveUpReply(ReplySink sink, uint number, ByteBuffer frame, int at)
    {
        frame.Length = at;
        ReplyError(sink, number, OutcomeStatus.Internal,
            "The partition has stopped on an internal error; see the node's log.");
    }

    /// <summary>
    /// As <see cref="EndReply"/>, for a read. False when the answer is larger than the client's room: it is taken back.
    /// </summary>
    public bool TryEndRead(ReplySink sink, ByteBuffer frame, int at)
    {
        if (!sink.HasRoomForRead(at, frame.Length - at))
        {
            frame.Length = at;
            return false;
        }

        EndReply(sink, frame, at);
        return true;
    }

    /// <summary>
    /// As <see cref="EndReply"/>, for a write, which is applied and cannot wait. False when the answer has a value
    /// larger than the client's room: it is taken back.
    /// </summary>
    public bool TryEndWrite(ReplySink sink, ByteBuffer frame, int at)
    {
        if (!sink.HasRoomForWrite(at, frame.Length - at))
        {
            frame.Length = at;
            return false;
        }

        EndReply(sink, frame, at);
        return true;
    }

    /// <summary>Answers with an outcome.</summary>
    public void Reply(ReplySink sink, uint number, scoped in Outcome outcome)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        outcome.Write(frame);
        EndReply(sink, frame, at);
    }

    /// <summary>Answers with a refusal that says why.</summary>
    public void ReplyError(ReplySink sink, uint number, OutcomeStatus status, string sentence)
    {
        ByteBuffer frame = BeginReply(sink, number, out int at);
        Outcome.WriteError(frame, status, sentence);
        EndReply(sink, frame, at);
    }

    /// <summary>Hands each client its frame.</summary>
    public void Deliver()
    {
        trace?.Flush();
        foreach (ReplySink sink in _sinks)
        {
            ByteBuffer frame = sink.Open[_loop]!;
            sink.Open[_loop] = null;
            if (sink.OpenCount[_loop] == 0)
            {
                // Its only answer was taken back.
                frame.Return();
                continue;
            }

            sink.Deliver(frame, sink.OpenCount[_loop]);
        }

        _sinks.Clear();
    }
}
