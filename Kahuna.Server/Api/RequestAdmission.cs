using System.Buffers;
using System.Buffers.Binary;
using Kahuna.Server.Access;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
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

    /// <summary>Decides whether callers' commands may go on; null: all may.</summary>
    public AccessGate? Gate { get; init; }

    /// <summary>The node's traces; null: nothing is traced.</summary>
    public ServerTraces? Traces { get; init; }

    /// <summary>Operations without a caller's trace may get one of their own.</summary>
    public bool SamplesRoots { get; init; }

    /// <summary>
    /// Accepts a Requests frame (a gRPC message body): copies it once, checks each command and posts the valid ones.
    /// Returns the number of operations that will be answered, or -1 if the frame is malformed and nothing was done.
    /// </summary>
    public int Accept(ReadOnlySequence<byte> message, ReplySink sink, Caller? caller = null)
    {
        ByteBuffer buffer = ByteBuffer.Rent((int)message.Length);
        message.CopyTo(buffer.Take((int)message.Length));
        ClientBatch batch = router.Begin(buffer, sink);
        ByteBuffer? refusals = null;
        int refused = 0;
        AccessPass pass = Gate?.Look(caller) ?? default;
        int count = Split(batch, in pass, ref refusals, ref refused);
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
            byte[] command = batch.Command(operation).ToArray();
            uint number = operation.Number.Number;
            Forward!(new ForwardedRequest(command, number, operation.WaitMs, sink)
            {
                Parent = sink.HasTraces ? sink.TracedParent(number) : default,
            });
        }

        if (sink.HasTraces && count > 0)
        {
            sink.EndTraces();
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
    /// Accepts one command of a unary call and takes ownership of the buffer. True if it was posted, with a copy of the
    /// bytes that were, which are as many; otherwise status and sentence of the refusal.
    /// </summary>
    public bool AcceptOne(ByteBuffer buffer, ReplySink sink, uint waitMs, Caller? caller, Span<byte> accepted,
        out (OutcomeStatus Status, string? Sentence) refusal)
    {
        AccessPass pass = Gate?.Look(caller) ?? default;
        bool reads = Command.TryRead(buffer.Written, out Command command);
        refusal = (OutcomeStatus.InvalidArgument, "The command is malformed.");
        if (!reads
            || !IsGood(in command, out refusal.Status, out refusal.Sentence)
            || (refusal.Sentence =
                pass.Admit(in command, buffer.Array.AsSpan(0, buffer.Length), out refusal.Status)) is not null)
        {
            buffer.Return();
            return false;
        }

        buffer.Written.CopyTo(accepted);
        ClientBatch batch = router.Begin(buffer, sink);
        RequestTag number = new(0, Trace: Traces is { Contexts.IsOn: true } ? TraceOf(sink, 0) : (ushort)0);
        batch.Add(new ClientOperation(
            0, buffer.Length, number, waitMs, router.GroupIndexOf(in command), command.IsRead));
        router.Route(batch);
        return true;
    }

    private bool IsGood(scoped in Command command, out OutcomeStatus status, out string? sentence)
    {
        if (!CommandCheck.IsGood(in command, valueBytesMax, out status, out sentence))
        {
            return false;
        }

        status = (sentence = router.RefuseSpread(in command)) is null ? default : OutcomeStatus.InvalidArgument;
        return sentence is null;
    }

    private int Split(ClientBatch batch, in AccessPass pass, ref ByteBuffer? refusals, ref int refused)
    {
        ReadOnlySpan<byte> message = batch.Buffer.Written;
        if (!Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload)
            || !Frame.TryReadHeader(payload, out FrameKind kind, out _, out int count)
            || kind is not FrameKind.Requests and not FrameKind.Traces
            || count > Limits.InFlightPerStreamMax)
        {
            return -1;
        }

        if (kind == FrameKind.Traces)
        {
            return batch.Sink.TakeTraces(payload[Frame.HeaderBytes..], count) ? 0 : -1;
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

            ClientOperation operation = new(at, (int)length, number, waitMs, 0, false);
            Admit(batch, in operation, in pass, ref refusals, ref refused);
            at += (int)length;
        }

        return at == message.Length ? count : -1;
    }

    private void Admit(ClientBatch batch, in ClientOperation operation, in AccessPass pass, ref ByteBuffer? refusals,
        ref int refused)
    {
        OutcomeStatus status = OutcomeStatus.InvalidArgument;
        string? sentence = "The command is malformed.";
        if (Command.TryRead(batch.Command(operation), out Command command)
            && IsGood(in command, out status, out sentence))
        {
            sentence = pass.Passes(in command) ? null : pass.Admit(in command, batch.Command(in operation), out status);
            if (sentence is null)
            {
                sentence = command.Has(CommandFlags.Opening) ? batch.Sink.RefuseOpening(in command) : null;
                if (sentence is null)
                {
                    Collect(batch, in operation, in command);
                    return;
                }

                status = OutcomeStatus.Busy;
            }
        }

        if (refusals is null)
        {
            refusals = ByteBuffer.Rent();
            Frame.Begin(refusals, FrameKind.Replies);
        }

        int at = refusals.Length;
        Frame.BeginReply(refusals, operation.Number.Number);
        router.Refusals.Add(status);
        AccessPass.WriteRefusal(refusals, status, sentence!);
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
            ushort group = router.GroupIndexOf(in command);
            RequestTag number = batch.Sink.HasTraces || SamplesRoots
                ? operation.Number with { Trace = TraceOf(batch.Sink, operation.Number.Number) }
                : operation.Number;
            batch.Add(operation with
            {
                Number = number,
                WaitMs = waitMs,
                GroupIndex = group,
                IsRead = command.IsRead,
            });
        }
    }

    private ushort TraceOf(ReplySink sink, uint number)
    {
        ushort place = sink.HasTraces ? sink.TraceOf(number) : (ushort)0;
        return place == 0 && SamplesRoots ? Traces!.Contexts.Sample() : place;
    }
}
