using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
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
    private int _ownCount;
    private int _openCount;
    private int _openBytes;
    private int _queuedAtTick;
    private long _queuedBytes;

    /// <summary>Writes that wait to be proposed.</summary>
    public int Queued => _commands.Count;

    /// <summary>Writes that are proposed and not yet answered.</summary>
    public int Proposed => _replies.Count - Queued;

    /// <summary>Bytes queued and proposed.</summary>
    public long Bytes { get; private set; }

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
    /// The next entry was proposed at this place: writes its payload, stamped with <paramref name="timeMs"/>.
    /// </summary>
    public void MarkProposed(LogIndex index, Term term, long timeMs, Span<byte> payload)
    {
        Span span = _spans.Take();
        InvariantException.Require(payload.Length == span.Bytes, "an entry has room for its commands");
        Span<byte> room = CommandEntry.WriteHeader(payload, timeMs, span.Count);
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
        _entries.Add(new PendingEntry(index, term, span.Count, bytes));
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

    private void Add(in QueuedCommand queued, ReadOnlySpan<byte> command, ReplySink? sink, uint number)
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
    internal readonly record struct PendingReply(ReplySink? Sink, uint Number, bool IsNumbered);

    /// <summary>A command that waits, in a client's batch, or without one in the queue's own room.</summary>
    private readonly record struct QueuedCommand(ClientBatch? Batch, int Offset, int Length);

    /// <summary>Commands that become one entry.</summary>
    private readonly record struct Span(int Bytes, int Count);

    private readonly record struct PendingEntry(LogIndex Index, Term Term, int Count, int Bytes);
}
