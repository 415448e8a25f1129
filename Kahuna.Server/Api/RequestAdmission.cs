using System.Buffers;
using System.Buffers.Binary;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Hop 3: admits operations. Checks every command first; a malformed one is answered here and never reaches a
/// partition. Any thread.
/// </summary>
internal sealed class RequestAdmission(Router router, int valueBytesMax)
{
    /// <summary>The node's budget for unsent replies.</summary>
    public ReplyRoom Room { get; init; } = new();

    public Router Router => router;

    public int ValueBytesMax => valueBytesMax;

    /// <summary>
    /// Forwards requests to the leader when their clients ask for it; null: handles them like all others. Set once,
    /// before the first frame.
    /// </summary>
    public Action<ForwardedRequest>? Forward { get; set; }

    /// <summary>
    /// Accepts a Requests frame (a gRPC message body): copies it once, checks each command and posts the valid ones.
    /// Returns the number of operations that will be answered, or -1 if the frame is malformed and nothing was done.
    /// </summary>
    public int Accept(ReadOnlySequence<byte> message, ReplySink sink)
    {
        ByteBuffer buffer = ByteBuffer.Rent((int)message.Length);
        message.CopyTo(buffer.Take((int)message.Length));
        ClientBatch batch = ClientBatch.Rent(buffer, sink, router.NowMs);
        ByteBuffer? refusals = null;
        int refused = 0;
        int count = Split(batch, ref refusals, ref refused);
        if (count < 0)
        {
            refusals?.Return();
            batch.Release();
            return -1;
        }

        if (refusals is not null)
        {
            sink.Deliver(refusals, refused);
        }

        foreach (ClientOperation operation in batch.Forwarded)
        {
            Forward!(
                new ForwardedRequest(batch.Command(operation).ToArray(), operation.Number, operation.WaitMs, sink));
        }

        if (batch.Operations.Length > 0)
        {
            router.Route(batch);
        }
        else
        {
            batch.Release();
        }

        return count;
    }

    /// <summary>
    /// Accepts one command of a unary call and takes ownership of the buffer. True if it was posted; otherwise status
    /// and sentence of the refusal.
    /// </summary>
    public bool AcceptOne(
        ByteBuffer buffer, ReplySink sink, uint waitMs, out OutcomeStatus status, out string? sentence)
    {
        bool reads = Command.TryRead(buffer.Written, out Command command);
        if (!reads || !CommandCheck.IsGood(command, valueBytesMax, out status, out sentence))
        {
            status = OutcomeStatus.InvalidArgument;
            sentence = "The command is malformed.";
            if (reads)
            {
                CommandCheck.IsGood(command, valueBytesMax, out status, out sentence);
            }

            buffer.Return();
            return false;
        }

        ClientBatch batch = ClientBatch.Rent(buffer, sink, router.NowMs);
        batch.Add(new ClientOperation(0, buffer.Length, 0, waitMs, router.SlotOf(in command), command.IsRead));
        router.Route(batch);
        status = default;
        sentence = null;
        return true;
    }

    private int Split(ClientBatch batch, ref ByteBuffer? refusals, ref int refused)
    {
        ReadOnlySpan<byte> message = batch.Buffer.Written;
        if (!Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count)
            || kind != FrameKind.Requests
            || count > Limits.InFlightPerStreamMax)
        {
            return -1;
        }

        int at = message.Length - payload.Length + Frame.HeaderBytes;
        for (int i = 0; i < count; i++)
        {
            if (message.Length - at < Frame.RequestHeaderBytes)
            {
                return -1;
            }

            uint number = BinaryPrimitives.ReadUInt32LittleEndian(message[at..]);
            uint waitMs = BinaryPrimitives.ReadUInt32LittleEndian(message[(at + 4)..]);
            uint length = BinaryPrimitives.ReadUInt32LittleEndian(message[(at + 8)..]);
            at += Frame.RequestHeaderBytes;
            if (length > (uint)(message.Length - at))
            {
                return -1;
            }

            Admit(batch, new ClientOperation(at, (int)length, number, waitMs, 0, false), ref refusals, ref refused);
            at += (int)length;
        }

        return at == message.Length ? count : -1;
    }

    private void Admit(ClientBatch batch, in ClientOperation operation, ref ByteBuffer? refusals, ref int refused)
    {
        OutcomeStatus status = OutcomeStatus.InvalidArgument;
        string? sentence = "The command is malformed.";
        if (Command.TryRead(batch.Command(operation), out Command command)
            && CommandCheck.IsGood(command, valueBytesMax, out status, out sentence))
        {
            sentence = batch.Sink.RefuseOpening(in command);
            if (sentence is null)
            {
                Collect(batch, in operation, in command);
                return;
            }

            status = OutcomeStatus.Busy;
        }

        if (refusals is null)
        {
            refusals = ByteBuffer.Rent();
            Frame.Begin(refusals, FrameKind.Replies);
        }

        int at = refusals.Length;
        Frame.BeginReply(refusals, operation.Number);
        Outcome.WriteError(refusals, status, sentence!);
        Frame.EndReply(refusals, at);
        refused++;
    }

    private void Collect(ClientBatch batch, in ClientOperation operation, scoped in Command command)
    {
        uint waitMs = operation.WaitMs & ~Frame.ForwardFlag;
        if (waitMs != operation.WaitMs && Forward is not null)
        {
            batch.Forwarded.Add(operation with { WaitMs = waitMs });
        }
        else
        {
            batch.Add(operation with { WaitMs = waitMs, Slot = router.SlotOf(in command), IsRead = command.IsRead });
        }
    }
}
