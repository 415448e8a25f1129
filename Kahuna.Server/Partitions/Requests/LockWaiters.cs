using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's part in locks besides replicating them: holds answers back until there is something to say, so that
/// nobody has to ask again and again, and finds out which leases have ended and which claims wait for nobody any more.
/// Owned by a partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class LockWaiters(LoopOptions options, TurnClock clock, ReplyFrames replies, AppliedState applied,
    ParkedReads parked)
{
    /// <summary>
    /// Answers of one stream or call that are held back at a time; less than it may have in flight, so that what ends
    /// the wait still gets through.
    /// </summary>
    private const int HeldPerSinkMax = Wire.Limits.InFlightPerStreamMax / 2;

    /// <summary>
    /// Held reads that one turn looks at, and bytes of answers after which it leaves the others to the next turn, so
    /// that what else waits for the loop comes in between.
    /// </summary>
    private const int ReadsPerTurn = 1024;
    private const int AnswerBytesPerTurn = 1 << 20;

    private readonly HeldPolls _held = new();
    private readonly Dictionary<long, long> _seenMs = [];
    private readonly List<int> _due = [];
    private readonly List<int> _ended = [];
    private int _answerBytes;
    private bool _isOverdue;
    private long _knowsSinceMs;

    private LockTable Table => applied.State.Locks;

    /// <summary>Answers that are held back.</summary>
    public int Held => _held.Held;

    /// <summary>
    /// Places that answers and claims take up here, also those that are over. For tests while no turn runs.
    /// </summary>
    public int Remembered => _held.Places + _seenMs.Count;

    /// <summary>Some of them are to be answered, and were left to the next turn.</summary>
    public bool IsDue => _held.HasChanged || _isOverdue;

    /// <summary>This node leads from now on, or was paused: waiting clients will ask again.</summary>
    public void BeginServing() => _knowsSinceMs = clock.NowMs;

    /// <summary>Answers a read about a lock, now or later.</summary>
    public void Serve(ReplySink sink, uint number, ReadOnlySpan<byte> bytes, long clusterMs)
    {
        Command command = Decode(bytes);
        bool mayHold = command.Kind is CommandKind.LockAwait or CommandKind.LockObserve;
        bool isFull = sink.HeldBack >= HeldPerSinkMax || !sink.HasRoomToHold(LongPoll.BytesOf(bytes.Length));
        if (!TryAnswer(sink, number, in command, clusterMs, isLast: !mayHold || command.Number == 0 || isFull))
        {
            long key = command.Kind == CommandKind.LockAwait
                ? command.ComparedRevision : Table.Rows.WatchKey(command.Key);
            _held.Hold(new LongPoll(sink, number, key, bytes.ToArray()), clock.NowMs + command.Number);
            Table.Rows.IsWatched = true;
        }
    }

    /// <summary>
    /// Answers what has something to say since commands were applied, and what was held back long enough, up to a
    /// turn's share of both.
    /// </summary>
    public void ServeChanges(long clusterMs)
    {
        foreach (long change in Table.Rows.Changes)
        {
            _seenMs.Remove(change);
            _held.Change(change);
        }

        Table.Rows.Changes.Clear();
        _answerBytes = 0;
        int left = ReadsPerTurn;
        for (; left > 0 && _answerBytes < AnswerBytesPerTurn && _held.TryTakeChanged(out LongPoll read); left--)
        {
            if (read.HasEnded)
            {
                continue;
            }

            if (read.Sink.IsClosed || TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterMs, isLast: false))
            {
                _held.End(read);
            }
            else
            {
                _held.Keep(read);
            }
        }

        if (_isOverdue)
        {
            ServeOverdue(clusterMs, left);
        }

        _held.Tidy();
    }

    /// <summary>A tick: answers what was held back long enough.</summary>
    public void Tick(long clusterMs)
    {
        _answerBytes = 0;
        ServeOverdue(clusterMs, ReadsPerTurn);
    }

    private void ServeOverdue(long clusterMs, int left)
    {
        _isOverdue = false;
        while (_held.IsOverdue(clock.NowMs))
        {
            if (left-- <= 0 || _answerBytes >= AnswerBytesPerTurn)
            {
                _isOverdue = true;
                return;
            }

            if (_held.TryTakeOverdue(out LongPoll read))
            {
                if (!read.Sink.IsClosed)
                {
                    TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterMs, isLast: true);
                }

                _held.EndOverdue(read);
            }
        }
    }

    /// <summary>Proposes the sweeps that are due: each does a bounded number of steps. How many they are.</summary>
    public int Sweep(long clusterMs, Durability durability, ProposalQueue proposals)
    {
        _due.Clear();
        Table.CollectDueWaiters(clusterMs, options.SweepKeysMax, _due);
        int steps = Math.Max(_due.Count, Table.HasWork(clusterMs)
            ? Math.Max(1, Table.StepsDue(clusterMs, options.SweepKeysMax, _ended)) : 0);
        for (int i = 0; i < steps; i += LockTable.StepsPerSweep)
        {
            ByteBuffer decisions = ByteBuffer.Rent();
            for (int at = i; at < Math.Min(_due.Count, i + LockTable.StepsPerSweep); at++)
            {
                (FencingToken token, long waitEndMs) = Table.Waiter(_due[at]);
                new WaiterDecision(_due[at], token, waitEndMs <= clusterMs ? 0 : AgainMs(token.Value)).Write(decisions);
            }

            Command sweep = new()
            {
                Kind = CommandKind.LockSweep,
                Durability = durability,
                Flags = CommandFlags.Number,
                Number = LockTable.StepsPerSweep,
                Value = decisions.Written
            };
            ByteBuffer command = ByteBuffer.Rent(sweep.EncodedBytes);
            sweep.Write(command);
            proposals.Add(command.Written);
            command.Return();
            decisions.Return();
        }

        return (steps + LockTable.StepsPerSweep - 1) / LockTable.StepsPerSweep;
    }

    /// <summary>Answers everything that is held back in the same way: this node leads no more, or stops.</summary>
    public void Drop(OutcomeStatus status, long number)
    {
        foreach (LongPoll read in _held.EndAll())
        {
            replies.Reply(read.Sink, read.Number, new Outcome(status, number: number));
        }

        _isOverdue = false;
        _seenMs.Clear();
        Table.Rows.Changes.Clear();
        Table.Rows.IsWatched = false;
    }

    /// <summary>In how many ms it is to be looked after a claim again; 0: nobody waits any more.</summary>
    private int AgainMs(long token)
    {
        if (IsAwaited(token))
        {
            return (int)options.StateLimits.WaiterCheckMs;
        }

        // A new leader has not heard from every waiting client yet.
        long seenMs = Math.Max(_knowsSinceMs, _seenMs.GetValueOrDefault(token));
        return (int)Math.Clamp(seenMs + options.StateLimits.WaiterCheckMs - clock.NowMs, 0,
            options.StateLimits.WaiterCheckMs);
    }

    /// <summary>
    /// Somebody is there whose answer is held back. Those whose connection is lost are dropped: they may come back on
    /// another one.
    /// </summary>
    private bool IsAwaited(long token)
    {
        while (_held.First(token) is { } read)
        {
            if (!read.Sink.IsClosed)
            {
                return true;
            }

            _held.EndListed(read);
        }

        return false;
    }

    private void See(long token)
    {
        _seenMs[token] = clock.NowMs;
        Table.Rows.IsWatched = true;
    }

    private bool TryAnswer(ReplySink sink, uint number, scoped in Command command, long clusterMs, bool isLast)
    {
        ByteBuffer outcome = ByteBuffer.Rent();
        bool answers = applied.State.Read(in command, clusterMs, outcome) || isLast;
        if ((OutcomeStatus)outcome.Written[0] == OutcomeStatus.Queued && !sink.IsClosed)
        {
            See(command.ComparedRevision);
        }

        if (answers)
        {
            ByteBuffer frame = replies.BeginReply(sink, number, out int at);
            frame.Append(outcome.Written);
            _answerBytes += outcome.Length;
            int answerBytes = frame.Length - at;
            if (!replies.TryEndRead(sink, frame, at))
            {
                // The client does not take the answers it has. When it does, the lock is looked at again, and what is
                // found then is answered at once.
                Command again = command;
                again.Number = command.Kind is CommandKind.LockAwait or CommandKind.LockObserve ? 0 : command.Number;
                outcome.Length = 0;
                again.Write(outcome);
                parked.Add(sink, new ParkedRead(number, null, 0, outcome.Written.ToArray()), answerBytes);
            }
        }

        outcome.Return();
        return answers;
    }

    private static Command Decode(ReadOnlySpan<byte> bytes)
    {
        bool decodes = Command.TryRead(bytes, out Command command);
        InvariantException.Require(decodes, "a read that passed the door decodes");
        return command;
    }
}
