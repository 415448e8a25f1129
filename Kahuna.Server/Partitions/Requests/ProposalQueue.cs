using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's writes on their way to being applied, in order: first those that wait to be proposed, then those that are
/// proposed and wait for their entry to be applied. A client's command stays in the batch that it came in until it is
/// written into its entry, so that it is copied once. Owned by a group.
/// </summary>
internal sealed class ProposalQueue(int entryBytesMax, ReplyFrames replies)
{
    /// <summary>Commands of the group itself, and those that have waited for too long in a client's batch.</summary>
    private readonly WorkBuffer _own = new(4 * 1024);
    private readonly Ring<QueuedCommand> _commands = new(256);
    private readonly Ring<Span> _spans = new(16);
    private readonly Ring<PendingReply> _replies = new(1024);
    private readonly Ring<PendingEntry> _entries = new(64);
    private long _added;
    private int _ownCount;
    private int _openCount;
    private int _openBytes;
    private int _queuedAtTick;
    private long _queuedBytes;

    /// <summary>Writes that wait to be proposed.</summary>
    public int Queued => _commands.Count;

    /// <summary>Writes that are proposed and not yet answered.</summary>
    public int Proposed => _replies.Count - Queued;

    /// <summary>Writes that were ever queued.</summary>
    public long Accepted => _added;

    /// <summary>The first so many of them are answered: what they did is in the state.</summary>
    public long Answered => _added - _replies.Count;

    /// <summary>Bytes queued and proposed.</summary>
    public long Bytes { get; private set; }

    /// <summary>When the entry of the latest <see cref="TryTake"/> passed its stages.</summary>
    public OperationStages TakenStages { get; private set; }

    /// <summary>Queues a client's write. The batch is held until the command is proposed.</summary>
    public void Add(ClientBatch batch, in ClientOperation operation)
    {
        // One hold serves the commands of a batch that follow one another.
        if (Queued == 0 || _commands[Queued - 1].Batch != batch)
        {
            batch.Hold();
        }

        Add(new QueuedCommand(batch, operation.Offset, operation.Length), batch.Command(operation), batch.Sink,
            operation.Number);
    }

    /// <summary>Queues a write of the group itself, which has no caller; its command is copied.</summary>
    public void Add(ReadOnlySpan<byte> command) => Add(Keep(command), command, null, 0);

    /// <summary>The payload of the next entry is this long; false when nothing waits.</summary>
    public bool TryPeek(out int payloadBytes)
    {
        if (_spans.Count == 0 && _openCount > 0)
        {
            CloseSpan();
        }

        payloadBytes = _spans.Count > 0 ? _spans[0].Bytes : 0;
        return _spans.Count > 0;
    }

    /// <summary>
    /// The next entry was proposed at this place: writes its payload, stamped with <paramref name="time"/>.
    /// </summary>
    public void MarkProposed(LogIndex index, Term term, ClusterTime time, Span<byte> payload)
    {
        Span span = _spans.Take();
        InvariantException.Require(payload.Length == span.Bytes, "an entry has room for its commands");
        Span<byte> room = CommandEntry.WriteHeader(payload, time, span.Count);
        for (int i = 0; i < span.Count; i++)
        {
            QueuedCommand command = _commands[0];
            room = CommandEntry.WriteItem(room, BytesOf(command));
            TakeCommand();
        }

        InvariantException.Require(room.IsEmpty, "the commands of an entry fill it");
        int bytes = span.Bytes - CommandEntry.HeaderBytes;
        _queuedBytes -= bytes;
        InvariantException.Require(_queuedBytes >= 0 && (_queuedBytes == 0) == (Queued == 0),
            "queued bytes are those of the queued commands");
        _entries.Add(new PendingEntry(index, term, span.Count, bytes, new OperationStages(Proposed: replies.Stamp())));
    }

    /// <summary>The node's own log has the entries up to this one on stable storage.</summary>
    public void Persisted(LogIndex index)
    {
        uint now = _entries.Count == 0 ? 0 : replies.Stamp();
        for (int i = 0; now != 0 && i < _entries.Count && _entries[i].Index <= index; i++)
        {
            ref PendingEntry entry = ref _entries[i];
            if (entry.Stages.Persisted == 0)
            {
                entry = entry with { Stages = entry.Stages with { Persisted = now } };
            }
        }
    }

    /// <summary>The entries up to this one are committed, and are about to be applied.</summary>
    public void BeginApply(LogIndex committed)
    {
        uint now = replies.AnswersBegan;
        for (int i = 0; now != 0 && i < _entries.Count && _entries[i].Index <= committed; i++)
        {
            ref PendingEntry entry = ref _entries[i];
            if (entry.Stages.Committed == 0)
            {
                entry = entry with { Stages = entry.Stages with { Committed = now } };
            }
        }
    }

    /// <summary>
    /// Forgets what can never be committed now that the entry at <paramref name="index"/> is, with this term: another
    /// entry at this index, and every entry of an earlier term behind it, because terms never decrease along a log.
    /// None of it happened: each caller is sent to the leader.
    /// </summary>
    public void DropReplaced(LogIndex index, Term term, NodeId leader)
    {
        while (_entries.Count > 0
            && (_entries[0].Term < term || (_entries[0].Index == index && _entries[0].Term != term)))
        {
            DropEntry(leader);
        }
    }

    /// <summary>
    /// Looks whether the committed entry at <paramref name="index"/> is awaited, and by how many replies. After
    /// <see cref="DropReplaced"/>.
    /// </summary>
    public bool TryTake(LogIndex index, out int replies)
    {
        replies = 0;
        if (_entries.Count == 0 || _entries[0].Index != index)
        {
            return false;
        }

        PendingEntry entry = _entries.Take();
        Bytes -= entry.Bytes;
        InvariantException.Require(Bytes >= _queuedBytes && entry.Count <= Proposed,
            "an entry takes its own bytes and replies along");
        replies = entry.Count;
        TakenStages = entry.Stages;
        return true;
    }

    /// <summary>
    /// A tick of the owner's clock. What has waited since the tick before is copied out of its client's batch: while
    /// the log stands still, a batch must not be held for the sake of one command.
    /// </summary>
    public void Tick()
    {
        for (int i = 0; i < _queuedAtTick; i++)
        {
            QueuedCommand command = _commands[i];
            if (command.Batch is { } batch)
            {
                bool isLastOfBatch = i + 1 == Queued || _commands[i + 1].Batch != batch;
                _commands[i] = Keep(BytesOf(command));
                if (isLastOfBatch)
                {
                    batch.Release();
                }
            }
        }

        _queuedAtTick = Queued;
        _own.Tick();
    }

    /// <summary>The next reply of what was proposed.</summary>
    public PendingReply TakeReply()
    {
        InvariantException.Require(Proposed > 0, "a reply is taken of what was proposed");
        return _replies.Take();
    }

    /// <summary>Forgets what is queued and not proposed. Each caller gets this answer.</summary>
    public void DropQueued(OutcomeStatus status, long number = 0)
    {
        int proposed = Proposed;
        for (int i = proposed; i < _replies.Count; i++)
        {
            Answer(_replies[i], status, number);
        }

        _replies.RemoveLast(Queued);
        while (Queued > 0)
        {
            TakeCommand();
        }

        Bytes -= _queuedBytes;
        _queuedBytes = 0;
        while (_spans.Count > 0)
        {
            _spans.Take();
        }

        _openCount = 0;
        _openBytes = 0;
        InvariantException.Require(_ownCount == 0 && Proposed == proposed, "nothing is queued any longer");
    }

    /// <summary>
    /// Gives up the numbered writes among those that are proposed: their end is not known here, and their callers hear
    /// so, once. Their entries stay in line, because they may still be committed.
    /// </summary>
    public void ReleaseNumbered()
    {
        for (int i = 0; i < Proposed; i++)
        {
            ref PendingReply reply = ref _replies[i];
            if (reply is { IsNumbered: true, Sink: not null })
            {
                Answer(reply, OutcomeStatus.Unknown);
                reply = default;
            }
        }
    }

    /// <summary>
    /// Forgets what is proposed. Each caller gets this answer, also those of an entry that was taken and broke off in
    /// the middle. What is queued stays.
    /// </summary>
    public void DropProposed(OutcomeStatus status)
    {
        while (_entries.Count > 0)
        {
            Bytes -= _entries.Take().Bytes;
        }

        InvariantException.Require(Bytes == _queuedBytes, "nothing but what is queued is counted");

        while (Proposed > 0)
        {
            Answer(_replies.Take(), status);
        }
    }

    /// <summary>Answers one caller, if there is one.</summary>
    public void Answer(in PendingReply reply, OutcomeStatus status, long number = 0)
    {
        if (reply.Sink is not null)
        {
            replies.Reply(reply.Sink, reply.Number, new Outcome(status, number: number));
        }
    }

    private void DropEntry(NodeId leader)
    {
        PendingEntry entry = _entries.Take();
        Bytes -= entry.Bytes;
        for (int i = 0; i < entry.Count; i++)
        {
            Answer(_replies.Take(), OutcomeStatus.NotLeader, leader.Value);
        }
    }

    private void Add(in QueuedCommand queued, ReadOnlySpan<byte> command, ReplySink? sink, RequestTag number)
    {
        if (_openCount > 0 && _openBytes + command.Length > entryBytesMax)
        {
            CloseSpan();
        }

        int bytes = CommandEntry.ItemHeaderBytes + command.Length;
        _openBytes += (_openCount == 0 ? CommandEntry.HeaderBytes : 0) + bytes;
        _openCount++;
        Bytes += bytes;
        _queuedBytes += bytes;
        _added++;
        _commands.Add(queued);
        _replies.Add(new PendingReply(sink, number, Command.IsNumbered(command)));
    }

    private void CloseSpan()
    {
        _spans.Add(new Span(_openBytes, _openCount));
        _openCount = 0;
        _openBytes = 0;
    }

    private ReadOnlySpan<byte> BytesOf(QueuedCommand command) =>
        (command.Batch?.Buffer ?? _own.Bytes).Array.AsSpan(command.Offset, command.Length);

    /// <summary>Copies a command into the queue's own room.</summary>
    private QueuedCommand Keep(ReadOnlySpan<byte> command)
    {
        int at = _own.Bytes.Length;
        _own.Bytes.Append(command);
        _ownCount++;
        return new QueuedCommand(null, at, command.Length);
    }

    /// <summary>Takes the first command off the queue, and lets its batch go after the last one of it.</summary>
    private void TakeCommand()
    {
        QueuedCommand command = _commands.Take();
        _queuedAtTick = Math.Max(0, _queuedAtTick - 1);
        if (command.Batch is null)
        {
            InvariantException.Require(_ownCount > 0, "own commands are counted");
            _ownCount--;
            if (_ownCount == 0)
            {
                _own.Clear();
            }
        }
        else if (Queued == 0 || _commands[0].Batch != command.Batch)
        {
            command.Batch.Release();
        }
    }

    /// <summary>Who waits for a write, and whether the caller may repeat it under the number that it has.</summary>
    internal readonly record struct PendingReply(ReplySink? Sink, RequestTag Number, bool IsNumbered);

    /// <summary>A command that waits, in a client's batch, or without one in the queue's own room.</summary>
    private readonly record struct QueuedCommand(ClientBatch? Batch, int Offset, int Length);

    /// <summary>Commands that become one entry.</summary>
    private readonly record struct Span(int Bytes, int Count);

    private readonly record struct PendingEntry(
        LogIndex Index, Term Term, int Count, int Bytes, OperationStages Stages);
}

/// <summary>
/// Payload of a log entry that carries commands: <c>i64 cluster time in ms, u32 count, then count × (u32 length,
/// command)</c>. Stateless.
/// </summary>
internal static class CommandEntry
{
    public const int HeaderBytes = 12;
    public const int ItemHeaderBytes = 4;

    /// <summary>Writes the beginning of a payload. Returns the rest of the room.</summary>
    public static Span<byte> WriteHeader(Span<byte> payload, ClusterTime time, int count)
    {
        BinaryPrimitives.WriteInt64LittleEndian(payload, time.Ms);
        BinaryPrimitives.WriteUInt32LittleEndian(payload[8..], (uint)count);
        return payload[HeaderBytes..];
    }

    /// <summary>Writes the next command. Returns the rest of the room.</summary>
    public static Span<byte> WriteItem(Span<byte> room, scoped ReadOnlySpan<byte> command)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(room, (uint)command.Length);
        command.CopyTo(room[ItemHeaderBytes..]);
        return room[(ItemHeaderBytes + command.Length)..];
    }

    public static bool TryReadHeader(ReadOnlySpan<byte> payload, out ClusterTime time, out int count,
        out ReadOnlySpan<byte> items)
    {
        time = default;
        count = 0;
        items = default;
        if (payload.Length < HeaderBytes)
        {
            return false;
        }

        time = new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(payload));
        count = BinaryPrimitives.ReadInt32LittleEndian(payload[8..]);
        items = payload[HeaderBytes..];
        return count >= 0;
    }

    public static bool TryReadItem(ref ReadOnlySpan<byte> items, out ReadOnlySpan<byte> command)
    {
        command = default;
        if (items.Length < ItemHeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(items);
        if (length > (uint)(items.Length - ItemHeaderBytes))
        {
            return false;
        }

        command = items.Slice(ItemHeaderBytes, (int)length);
        items = items[(ItemHeaderBytes + (int)length)..];
        return true;
    }
}

/// <summary>Tells the state which keys the next group of commands is about. Stateless.</summary>
internal static class CommandsAhead
{
    /// <summary>Items of one command that are looked at; small transactions are all that are worth it.</summary>
    private const int ItemsMax = 8;

    /// <summary>
    /// The next commands of an entry and how many are left. The applier handles bytes that do not decode.
    /// </summary>
    public static void OfEntry(Prefetcher ahead, ReadOnlySpan<byte> items, int left)
    {
        if (left == 1)
        {
            ahead.Forget();
            return;
        }

        for (int i = Math.Min(left, Prefetcher.CommandsMax); i > 0
            && CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes); i--)
        {
            ahead.Add(Command.KeyOf(bytes));
            if (bytes is [(byte)CommandKind.Transaction, ..])
            {
                AddItems(ahead, bytes);
            }
        }

        ahead.PrefetchWrites();
    }

    private static void AddItems(Prefetcher ahead, ReadOnlySpan<byte> bytes)
    {
        if (!Command.TryRead(bytes, out Command transaction))
        {
            return;
        }

        ReadOnlySpan<byte> items = CommandList.ItemsOf(in transaction);
        for (int i = 0; i < ItemsMax && CommandList.TryTakeBytes(ref items, out ReadOnlySpan<byte> item); i++)
        {
            ahead.AddItem(Command.KeyOf(item));
        }
    }

    /// <summary>The reads first in line, those behind them that are not confirmed yet included.</summary>
    public static void OfReads(Prefetcher ahead, ReadQueue reads)
    {
        for (int i = 0; i < reads.Count && i < Prefetcher.CommandsMax; i++)
        {
            ref readonly ReadQueue.PendingRead read = ref reads[i];
            ahead.Add(Command.KeyOf(read.Batch.Command(read.Batch.Operations[read.Operation])));
        }

        ahead.PrefetchReads();
    }
}

/// <summary>
/// Applies the commands of committed entries, and answers those of this leader's own callers. Owned by a group's
/// <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class AppliedCommands(
    RequestParts parts, ProposalQueue proposals, Housekeeping housekeeping, TransactionHolds holds)
{
    private readonly AppliedState _applied = parts.Applied;
    private readonly MemoryShare _memory = parts.Memory;
    private readonly ReplyFrames _replies = parts.Replies;

    /// <summary>Applies one command of an entry, and answers its caller, if one waits.</summary>
    public void Apply(RaftCore core, scoped in Command command, KnownHash known, bool isAwaited)
    {
        housekeeping.Applied(command.Kind);
        ProposalQueue.PendingReply reply = isAwaited ? proposals.TakeReply() : default;
        if (reply.Sink is null)
        {
            _applied.State.Apply(command, null, known);
            if (holds.Count > 0)
            {
                holds.Applied(in command, OutcomeStatus.Unset);
            }

            if (command.Kind == CommandKind.Evict)
            {
                // There is room again, before the next tick says so.
                _memory.Weigh(core);
            }

            return;
        }

        ByteBuffer frame = _replies.BeginReply(reply.Sink, reply.Number, out int at);
        try
        {
            _applied.State.Apply(command, frame, known);
        }
        catch (InvariantException)
        {
            _replies.GiveUpReply(reply.Sink, reply.Number, frame, at);
            throw;
        }

        if (holds.Count > 0)
        {
            holds.Applied(in command, (OutcomeStatus)frame.Array[at + Frame.ReplyHeaderBytes]);
        }

        _replies.Times?.Tell(reply.Number, parts.Group, proposals.TakenStages, command.Key);
        if (!_replies.TryEndWrite(reply.Sink, frame, at))
        {
            // The client does not take its answers: it does not learn how this write ended. Under its number it may
            // ask again.
            proposals.Answer(reply, OutcomeStatus.Unknown);
        }
    }
}
