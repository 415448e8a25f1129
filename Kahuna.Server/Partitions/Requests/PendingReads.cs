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
/// The reads of a partition: those that wait for their round, and those that wait because their client does not take
/// the answers it has. A turn serves a slice of them, so that many large answers do not keep others waiting. Pages of
/// lists have lines of their own and are read one by one, each client's in turn (<see cref="ServePage"/>). Owned by a
/// partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class PendingReads(
    ReplyFrames replies, AppliedState applied, LockWaiters locks, ParkedReads parked, RangeCuts cuts,
    TransactionHolds holds)
{
    /// <summary>Answer bytes that a partition makes in one turn: about a millisecond of copying.</summary>
    private const int SliceBytes = 4 << 20;

    /// <summary>
    /// Counted for each byte of the items of a read of many keys: an item has 17 bytes at least, and is looked up
    /// twice.
    /// </summary>
    private const int BatchWork = 8;

    /// <summary>
    /// Counted for each read besides its answer: the work of finding a key, so that a slice is at most 65,536 reads.
    /// </summary>
    private const int ReadBytes = 64;

    /// <summary>
    /// Held reads that a turn looks at again: each transaction that ends may concern any of them.
    /// </summary>
    private const int HeldPerTurn = 1_024;

    /// <summary>Room for the outcome of opening, confirming or ending a cut.</summary>
    private const int CutAnswerBytes = 1024;

    private readonly ReadQueue _reads = new();

    /// <summary>Reads of keys that a prepared transaction holds.</summary>
    private readonly HeldReads _held = new(applied);

    /// <summary>
    /// Openings of cuts, and reads of keys that transactions have begun to hold, whose round is confirmed and that wait
    /// for what was proposed before them.
    /// </summary>
    private readonly List<(ReplySink Sink, ParkedRead Read)> _early = [];

    /// <summary>
    /// Confirmed pages of lists. They leave the queue at once, so that no other read waits behind them.
    /// </summary>
    private readonly ParkedReads _pages = new(replies);

    /// <summary>
    /// Reads that wait for their round or their turn; those of clients that do not read are not counted.
    /// </summary>
    public int Count => _reads.Count + _early.Count + _pages.DueCount;

    /// <summary>
    /// Reads that wait until their clients take the answers they have, and pages that wait for their turn.
    /// </summary>
    public int Parked => parked.Count + _pages.Count + _held.Count;

    /// <summary>The group that is read.</summary>
    public required GroupId Group { get; init; }

    /// <summary>No read waits for anything.</summary>
    public bool IsEmpty =>
        _reads.IsEmpty && _early.Count == 0 && _held.Count == 0 && !parked.HasAny && !_pages.HasAny;

    /// <summary>A page may be read now.</summary>
    public bool HasPages => _pages.DueCount > 0;

    /// <summary>Queues a read under a ticket; the batch must be held for it.</summary>
    public void Add(ClientBatch batch, int operation, ulong ticket) => _reads.Add(batch, operation, ticket);

    /// <summary>A round has confirmed reads.</summary>
    public void Confirm(in ReadState state) => _reads.Confirm(state, replies.AnswersBegan);

    /// <inheritdoc cref="ParkedReads.Wake"/>
    public void Wake(ReplySink sink)
    {
        parked.Wake(sink);
        _pages.Wake(sink);
    }

    /// <inheritdoc cref="ParkedReads.WakeAll"/>
    public void WakeAll()
    {
        parked.WakeAll();
        _pages.WakeAll();
        _held.WakeAll();
    }

    /// <summary>
    /// Answers the reads whose round is confirmed and applied, as far as a turn's slice and the clients' room reach;
    /// pages of lists are put into their lines. True: more can be answered in the next turn.
    /// </summary>
    public bool Serve(ClusterTime now)
    {
        int left = SliceBytes;
        ServeEarly(now, ref left);
        if (_held.Count > 0)
        {
            ServeHeld(now, ref left);
        }

        if (holds.HasGranted)
        {
            ServeGranted(now, ref left);
        }

        if (!ServeParked(now, ref left))
        {
            return true;
        }

        for (int i = 0; _reads.TryTake(applied.Index, out ReadQueue.PendingRead read); i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfReads(applied.State.Ahead, _reads);
            }

            // The group begins with the read behind the one that was taken before it was looked at.
            KnownHash known = applied.State.Ahead.HashOf((i % Prefetcher.CommandsMax) - 1);
            RequestTag number = read.Batch.Operations[read.Operation].Number;
            ReplySink sink = read.Batch.Sink;
            ParkedRead asked = new(number, read.Batch, read.Operation, null);
            if (sink.IsClosed)
            {
                read.Batch.Release();
            }
            else if (IsPage(asked))
            {
                _pages.Add(sink, asked);
                left -= ReadBytes;
            }
            else if (parked.Holds(sink) || !TryAnswer(sink, asked, known, now, ref left, out _))
            {
                parked.Add(sink, asked);
            }

            if (left <= 0)
            {
                return true;
            }
        }

        // A line that has just begun is looked at once more, after its sink was asked to tell.
        return parked.DueCount > 0 || _held.IsDue || holds.HasGranted;
    }

    /// <summary>
    /// Reads one page, of the client whose turn it is. Its next page comes after one of each other client, and is of
    /// the state of that later moment.
    /// </summary>
    public void ServePage(ClusterTime now)
    {
        while (_pages.TryTakeDue(out ReplySink? sink))
        {
            while (_pages.TryPeek(sink, out _))
            {
                ParkedRead page = _pages.Take(sink);
                if (sink.IsClosed)
                {
                    page.Batch?.Release();
                    continue;
                }

                int left = 0;
                if (!TryAnswer(sink, page, default, now, ref left, out int answerBytes))
                {
                    _pages.Add(sink, page);
                    _pages.Need(sink, answerBytes);
                }

                _pages.Wake(sink);
                return;
            }
        }
    }

    /// <summary>Answers every read with the same: this node leads no more, or stops.</summary>
    public void Drop(OutcomeStatus status, long number)
    {
        while (_reads.TryDrop(out ReadQueue.PendingRead read))
        {
            replies.Reply(read.Batch.Sink, read.Batch.Operations[read.Operation].Number,
                new Outcome(status, number: number));
            read.Batch.Release();
        }

        foreach ((ReplySink sink, ParkedRead read) in _early)
        {
            replies.Reply(sink, read.Number, new Outcome(status, number: number));
            read.Batch?.Release();
        }

        _early.Clear();
        while (_held.Count > 0 && _held.TryDrop(out ReplySink sink, out ParkedRead read))
        {
            replies.Reply(sink, read.Number, new Outcome(status, number: number));
            read.Batch?.Release();
        }

        DropLines(parked, status, number);
        DropLines(_pages, status, number);
    }

    private void DropLines(ParkedReads lines, OutcomeStatus status, long number)
    {
        while (lines.HasAny && lines.TryDrop(out ReplySink? sink, out ParkedRead read))
        {
            replies.Reply(sink!, read.Number, new Outcome(status, number: number));
            read.Batch?.Release();
        }
    }

    /// <summary>A page, and not what begins or ends a cut: that is small, and writes may wait for it.</summary>
    private static bool IsPage(in ParkedRead read) =>
        CommandKinds.Has((CommandKind)read.Bytes[0], CommandTraits.IsList)
            && !CommandKinds.Has((CommandKind)read.Bytes[0], CommandTraits.ConcernsCut);

    /// <summary>Looks again at the openings of cuts that came too early.</summary>
    private void ServeEarly(ClusterTime now, ref int left)
    {
        int count = _early.Count;
        for (int i = 0; i < count; i++)
        {
            (ReplySink sink, ParkedRead read) = _early[i];
            if (sink.IsClosed)
            {
                read.Batch?.Release();
            }
            else if (parked.Holds(sink) || !TryAnswer(sink, read, default, now, ref left, out _))
            {
                parked.Add(sink, read);
            }
        }

        _early.RemoveRange(0, count);
    }

    /// <summary>Looks again at reads that a transaction has delayed.</summary>
    private void ServeHeld(ClusterTime now, ref int left)
    {
        int most = HeldPerTurn;
        while (most-- > 0 && left > 0 && _held.TryTakeDue(out ReplySink sink, out ParkedRead read))
        {
            left -= ReadBytes;
            if (sink.IsClosed)
            {
                read.Batch?.Release();
            }
            else if (IsPage(read))
            {
                _pages.Add(sink, read);
            }
            else if (parked.Holds(sink) || !TryAnswer(sink, read, default, now, ref left, out _))
            {
                parked.Add(sink, read);
            }
        }
    }

    /// <summary>Reads the keys of transactions that have waited for them.</summary>
    private void ServeGranted(ClusterTime now, ref int left)
    {
        while (left > 0 && holds.TryTakeGranted(out ReplySink sink, out ParkedRead read))
        {
            if (!sink.IsClosed && (parked.Holds(sink) || !TryAnswer(sink, read, default, now, ref left, out _)))
            {
                parked.Add(sink, read);
            }
        }
    }

    /// <summary>Looks at the lines that are due. False: the slice is used up.</summary>
    private bool ServeParked(ClusterTime now, ref int left)
    {
        int looked = 0;
        while (looked < parked.DueCount && left > 0)
        {
            ReplySink sink = parked.Due(looked);
            ServeLine(sink, now, ref left);
            if (left > 0)
            {
                looked++;
            }
        }

        if (looked > 0)
        {
            parked.Looked(looked);
        }

        return left > 0;
    }

    private void ServeLine(ReplySink sink, ClusterTime now, ref int left)
    {
        while (left > 0 && parked.TryPeek(sink, out ParkedRead read))
        {
            if (sink.IsClosed)
            {
                parked.Take(sink).Batch?.Release();
                left -= ReadBytes;
            }
            else if (CommandKinds.IsLock((CommandKind)read.Bytes[0]))
            {
                // It is answered, holds it back, or puts it at the end of the line again.
                parked.Take(sink);
                int others = parked.Count;
                locks.Serve(sink, read.Number, read.Bytes, now);
                read.Batch?.Release();
                left -= ReadBytes;
                if (parked.Count > others)
                {
                    replies.TellWhenLeft(sink);
                    return;
                }
            }
            else if (TryAnswer(sink, read, default, now, ref left, out int answerBytes))
            {
                parked.Take(sink);
            }
            else
            {
                parked.Need(sink, answerBytes);
            }
        }
    }

    /// <summary>
    /// True for a read that others answer, or that has to wait for a transaction: it is taken care of. What asks for a
    /// hold becomes a read of the key that is held.
    /// </summary>
    private bool IsSettled(ReplySink sink, in ParkedRead read, scoped ref Command command, ClusterTime now)
    {
        if (CommandKinds.IsLock(command.Kind) && !IsPage(read))
        {
            locks.Serve(sink, read.Number, read.Bytes, now);
            read.Batch?.Release();
            return true;
        }

        if (command.Kind is CommandKind.TransactionHold or CommandKind.TransactionRelease)
        {
            if (!holds.TryHold(sink, in read, ref command, out bool isEarly))
            {
                read.Batch?.Release();
                return true;
            }

            if (isEarly)
            {
                _early.Add((sink, read));
                return true;
            }
        }

        if (applied.State.KeyValues.Prepared.Delays(in command))
        {
            _held.Add(sink, read);
            return true;
        }

        return false;
    }

    /// <summary>
    /// Answers a read and lets its batch go. False: there is no room for its answer, of which the size is told.
    /// </summary>
    private bool TryAnswer(ReplySink sink, in ParkedRead read, KnownHash known, ClusterTime now, ref int left,
        out int answerBytes)
    {
        bool decodes = Command.TryRead(read.Bytes, out Command command);
        InvariantException.Require(decodes, "a read that passed the door decodes");
        left -= ReadBytes + (command.Value.Length * BatchWork);
        answerBytes = 1;
        if (IsSettled(sink, in read, ref command, now))
        {
            return true;
        }

        bool concernsCut = RangeCuts.Concerns(in command);
        if (!replies.HasRoom(sink, concernsCut ? CutAnswerBytes : answerBytes))
        {
            return false;
        }

        if (concernsCut && cuts.IsEarly(in command))
        {
            _early.Add((sink, read));
            return true;
        }

        ByteBuffer frame = replies.BeginReply(sink, read.Number, out int at);
        try
        {
            if (concernsCut)
            {
                cuts.Read(sink, in command, frame);
            }
            else
            {
                applied.State.Read(command, now, frame, known);
                if (command.Has(CommandFlags.Positioned))
                {
                    Outcome.AppendPoint(frame, at + Frame.ReplyHeaderBytes, applied.PointOf(Group));
                }
            }
        }
        catch (InvariantException)
        {
            replies.GiveUpReply(sink, read.Number, frame, at);
            throw;
        }

        answerBytes = frame.Length - at;
        replies.Tell(read.Number, Group, _reads.TakenConfirmed, command.Key);
        if (!replies.TryEndRead(sink, frame, at))
        {
            return false;
        }

        left -= answerBytes;
        read.Batch?.Release();
        return true;
    }
}

/// <summary>
/// A leader's linearizable reads: waiting for their round, then for the round's index to be applied. Owned by a
/// partition.
/// </summary>
internal sealed class ReadQueue
{
    private readonly Ring<PendingRead> _reads = new(1024);
    private readonly Ring<(ReadState State, uint At)> _confirmed = new(8);

    public int Count => _reads.Count;

    /// <summary>Nothing waits, and no round that was confirmed.</summary>
    public bool IsEmpty => _reads.Count == 0 && _confirmed.Count == 0;

    /// <summary>When the round of the latest <see cref="TryTake"/> was confirmed.</summary>
    public uint TakenConfirmed { get; private set; }

    /// <summary>A read that waits, by its place in the line.</summary>
    public ref readonly PendingRead this[int place] => ref _reads[place];

    /// <summary>Queues a read under a ticket; the batch must be held for it.</summary>
    public void Add(ClientBatch batch, int operation, ulong ticket)
    {
        InvariantException.Require(_reads.Count == 0 || ticket >= _reads[_reads.Count - 1].Ticket,
            "tickets are given out in order");
        _reads.Add(new PendingRead(batch, operation, ticket));
    }

    /// <summary>A round has confirmed all tickets up to this one.</summary>
    /// <param name="state">What it has confirmed.</param>
    /// <param name="at">When, as <see cref="OperationTimes.Stamp"/> tells it.</param>
    public void Confirm(in ReadState state, uint at = 0)
    {
        bool isLater = _confirmed.Count == 0
            || (_confirmed[_confirmed.Count - 1].State is var last && state.Ticket > last.Ticket
            && state.Index >= last.Index);
        InvariantException.Require(isLater, "rounds are confirmed in order");
        _confirmed.Add((state, at));
    }

    /// <summary>The next read that may be served with the state at <paramref name="applied"/>.</summary>
    public bool TryTake(LogIndex applied, out PendingRead read)
    {
        while (_confirmed.Count > 0 && _confirmed[0].State.Index <= applied)
        {
            if (_reads.Count > 0 && _reads[0].Ticket <= _confirmed[0].State.Ticket)
            {
                TakenConfirmed = _confirmed[0].At;
                read = _reads.Take();
                return true;
            }

            _confirmed.Take();
        }

        TakenConfirmed = 0;
        read = default;
        return false;
    }

    /// <summary>Takes any read, served or not: leadership is lost.</summary>
    public bool TryDrop(out PendingRead read)
    {
        while (_confirmed.Count > 0)
        {
            _confirmed.Take();
        }

        read = default;
        if (_reads.Count == 0)
        {
            return false;
        }

        read = _reads.Take();
        return true;
    }

    /// <summary>One read that waits.</summary>
    internal readonly record struct PendingRead(ClientBatch Batch, int Operation, ulong Ticket);
}
