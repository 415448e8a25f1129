using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's part in locks besides replicating them: holds answers back until there is something to say, so that
/// nobody has to ask again and again, and finds out which leases have ended and which claims nobody waits for.
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
    private readonly Dictionary<long, (NodeTime First, NodeTime Last)> _seen = [];
    private readonly List<Row> _due = [];
    private readonly List<Row> _ended = [];
    private int _answerBytes;
    private bool _isOverdue;
    private NodeTime _knowsSince;

    private LockTable Table => applied.State.Locks;

    /// <summary>Answers that are held back.</summary>
    public int Held => _held.Held;

    /// <summary>
    /// Places that answers and claims take up here, also those that are over. For tests while no turn runs.
    /// </summary>
    public int Remembered => _held.Places + _seen.Count;

    /// <summary>
    /// Milliseconds since a claim was first asked for here; null: it was not since this node leads.
    /// </summary>
    public long? WaitedMs(FencingToken token) =>
        _seen.TryGetValue(token.Value, out (NodeTime First, NodeTime Last) seen) ? clock.Now - seen.First : null;

    /// <summary>Nobody waits, and nothing is noted for anybody who would.</summary>
    public bool IsIdle => Remembered == 0 && !Table.Rows.IsWatched;

    /// <summary>Some of them are to be answered, and were left to the next turn.</summary>
    public bool IsDue => _held.HasChanged || _isOverdue;

    /// <summary>This node leads from now on, or was paused: waiting clients will ask again.</summary>
    public void BeginServing() => _knowsSince = clock.Now;

    /// <summary>Answers a read about a lock, now or later.</summary>
    public void Serve(ReplySink sink, RequestTag number, ReadOnlySpan<byte> bytes, ClusterTime clusterNow)
    {
        Command command = Decode(bytes);
        bool mayHold = CommandKinds.Has(command.Kind, CommandTraits.MayBeHeld);
        bool isFull = sink.HeldBack >= HeldPerSinkMax || !sink.HasRoomToHold(LongPoll.BytesOf(bytes.Length));
        if (!TryAnswer(sink, number, in command, clusterNow, isLast: !mayHold || command.Number == 0 || isFull))
        {
            long key = command.Kind == CommandKind.LockAwait
                ? command.ComparedRevision : Table.Rows.WatchKey(command.Key);
            _held.Hold(new LongPoll(sink, number, key, bytes.ToArray()), clock.Now + command.Number);
            Table.Rows.IsWatched = true;
        }
    }

    /// <summary>
    /// Answers what has something to say since commands were applied, and what was held back long enough, up to a
    /// turn's share of both.
    /// </summary>
    public void ServeChanges(ClusterTime clusterNow)
    {
        foreach (long change in Table.Rows.Changes)
        {
            if (_seen.Remove(change, out (NodeTime First, NodeTime Last) seen))
            {
                replies.Times?.LockWaits.Add(TimeSpan.MicrosecondsPerMillisecond * (clock.Now - seen.First));
            }

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

            if (read.Sink.IsClosed
                || TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterNow, isLast: false))
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
            ServeOverdue(clusterNow, left);
        }

        _held.Tidy();
    }

    /// <summary>A tick: answers what was held back long enough.</summary>
    public void Tick(ClusterTime clusterNow)
    {
        _answerBytes = 0;
        ServeOverdue(clusterNow, ReadsPerTurn);
    }

    private void ServeOverdue(ClusterTime clusterNow, int left)
    {
        _isOverdue = false;
        while (_held.IsOverdue(clock.Now))
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
                    TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterNow, isLast: true);
                }

                _held.EndOverdue(read);
            }
        }
    }

    /// <summary>Proposes the sweeps that are due: each does a bounded number of steps. How many they are.</summary>
    public int Sweep(ClusterTime clusterNow, Durability durability, ProposalQueue proposals)
    {
        _due.Clear();
        Table.CollectDueWaiters(clusterNow, options.SweepKeysMax, _due);
        int steps = Math.Max(_due.Count, Table.HasWork(clusterNow)
            ? Math.Max(1, Table.StepsDue(clusterNow, options.SweepKeysMax, _ended)) : 0);
        for (int i = 0; i < steps; i += LockTable.StepsPerSweep)
        {
            ByteBuffer decisions = ByteBuffer.Rent();
            for (int at = i; at < Math.Min(_due.Count, i + LockTable.StepsPerSweep); at++)
            {
                (FencingToken token, ClusterTime waitEnd) = Table.Waiter(_due[at]);
                int againMs = waitEnd <= clusterNow ? 0 : AgainMs(token.Value);
                new WaiterDecision(_due[at], token, againMs).Write(decisions);
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
        _seen.Clear();
        Table.Rows.Changes.Clear();
        Table.Rows.IsWatched = false;
    }

    /// <summary>Milliseconds until a claim is checked again; 0: nobody waits.</summary>
    private int AgainMs(long token)
    {
        if (IsAwaited(token))
        {
            return (int)options.StateLimits.WaiterCheckMs;
        }

        // A new leader has not heard from every waiting client yet.
        NodeTime seen = NodeTime.Max(_knowsSince, _seen.GetValueOrDefault(token).Last);
        return (int)Math.Clamp(seen + options.StateLimits.WaiterCheckMs - clock.Now, 0,
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
        ref (NodeTime First, NodeTime Last) seen = ref CollectionsMarshal.GetValueRefOrAddDefault(
            _seen, token, out bool isKnown);
        seen = (isKnown ? seen.First : clock.Now, clock.Now);
        Table.Rows.IsWatched = true;
    }

    private bool TryAnswer(
        ReplySink sink, RequestTag number, scoped in Command command, ClusterTime clusterNow, bool isLast)
    {
        ByteBuffer outcome = ByteBuffer.Rent();
        bool answers = applied.State.Read(in command, clusterNow, outcome) || isLast;
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
                again.Number = CommandKinds.Has(command.Kind, CommandTraits.MayBeHeld) ? 0 : command.Number;
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

/// <summary>
/// Long polls by what they wait for, and those among them for which it has happened. Adding one, taking one out and
/// noting a change take the same time however many there are. Owned by one <see cref="HeldPolls"/>; not thread-safe.
/// </summary>
internal sealed class LongPolls
{
    /// <summary>First of those that wait for one thing.</summary>
    private readonly Dictionary<long, LongPoll> _first = [];

    /// <summary>
    /// First of each list whose thing has changed. The lists are whole but for what was taken out since; their first
    /// ones stay until it is their turn.
    /// </summary>
    private readonly Queue<LongPoll> _changed = new();

    /// <summary>The rest of the list that is being taken.</summary>
    private LongPoll? _next;

    /// <summary>Some are to be looked at.</summary>
    public bool HasChanged => _next is not null || _changed.Count > 0;

    /// <summary>Adds one that is in no list, as the first of its list.</summary>
    public void Add(LongPoll read)
    {
        InvariantException.Require(read.Before is null && read.After is null && !read.HasEnded,
            "a long poll that is added is in no list");
        if (_first.TryGetValue(read.Key, out LongPoll? after))
        {
            after.Before = read;
            read.After = after;
        }

        _first[read.Key] = read;
    }

    /// <summary>What a key stands for has changed: those that wait for it are to be looked at.</summary>
    public void Change(long key)
    {
        if (_first.Remove(key, out LongPoll? first))
        {
            _changed.Enqueue(first);
        }
    }

    /// <summary>Takes the next one that is to be looked at out of its list. It may have ended.</summary>
    public bool TryTakeChanged(out LongPoll read)
    {
        LongPoll? next = _next ?? (_changed.TryDequeue(out LongPoll? first) ? first : null);
        read = next!;
        if (next is null)
        {
            return false;
        }

        InvariantException.Require(next.Before is null, "a list is taken from its first on");

        _next = next.After;
        _next?.Before = null;
        next.After = null;
        return true;
    }

    /// <summary>The first of those that wait for one thing, which has not changed; null when there is none.</summary>
    public LongPoll? First(long key) => _first.GetValueOrDefault(key);

    /// <summary>Takes one out of its list that has ended.</summary>
    public void Remove(LongPoll read)
    {
        InvariantException.Require(read.HasEnded, "a long poll leaves its list when it has ended");
        if (read.Before is not null)
        {
            read.Before.After = read.After;
        }
        else if (_first.TryGetValue(read.Key, out LongPoll? first) && first == read)
        {
            if (read.After is null)
            {
                _first.Remove(read.Key);
            }
            else
            {
                _first[read.Key] = read.After;
            }
        }
        else if (_next == read)
        {
            _next = read.After;
        }
        else
        {
            // The first of a list that waits for its turn: it keeps the others.
            return;
        }

        read.After?.Before = read.Before;
        read.Before = null;
        read.After = null;
    }

    /// <summary>Forgets all.</summary>
    public void Clear()
    {
        _first.Clear();
        _changed.Clear();
        _next = null;
    }
}

/// <summary>
/// Long polls that are held back: by what they wait for, and by when their hold ends. It knows nothing of what they
/// ask. Owned by one group; not thread-safe.
/// </summary>
internal sealed class HeldPolls
{
    /// <summary>Fewer ended polls than this are not worth a walk over all.</summary>
    private const int EndedMin = 1024;

    private readonly LongPolls _byKey = new();
    private readonly PriorityQueue<LongPoll, NodeTime> _byEnd = new();
    private int _ended;

    /// <summary>Polls that are held.</summary>
    public int Held => _byEnd.Count - _ended;

    /// <summary>Places that polls take up here, also those that have ended.</summary>
    public int Places => _byEnd.Count;

    /// <summary>Some are to be looked at, because what they wait for has changed.</summary>
    public bool HasChanged => _byKey.HasChanged;

    /// <summary>Holds a poll until what it waits for changes, at the longest until its hold ends.</summary>
    public void Hold(LongPoll poll, NodeTime end)
    {
        poll.Sink.HoldBack(1, poll.Bytes);
        _byKey.Add(poll);
        _byEnd.Enqueue(poll, end);
    }

    /// <summary>What a key stands for has changed: the polls that wait for it are to be looked at.</summary>
    public void Change(long key) => _byKey.Change(key);

    /// <summary>Takes the next poll that is to be looked at out of its list. It may have ended.</summary>
    public bool TryTakeChanged(out LongPoll poll) => _byKey.TryTakeChanged(out poll);

    /// <summary>A poll that was looked at waits on: nothing has happened that it would be told.</summary>
    public void Keep(LongPoll poll) => _byKey.Add(poll);

    /// <summary>The first poll that waits for this; null when there is none.</summary>
    public LongPoll? First(long key) => _byKey.First(key);

    /// <summary>The hold of some poll is over.</summary>
    public bool IsOverdue(NodeTime now) => _byEnd.TryPeek(out _, out NodeTime end) && end <= now;

    /// <summary>Takes the poll whose hold ends first. False when it has ended already.</summary>
    public bool TryTakeOverdue(out LongPoll poll)
    {
        poll = _byEnd.Dequeue();
        if (poll.HasEnded)
        {
            _ended--;
            InvariantException.Require(_ended >= 0 && _ended <= _byEnd.Count, "ended polls are counted");
            return false;
        }

        return true;
    }

    /// <summary>The hold of a poll is over, and it was answered.</summary>
    public void EndOverdue(LongPoll poll)
    {
        MarkEnded(poll);
        _byKey.Remove(poll);
    }

    /// <summary>A poll that was taken out of its list was answered, or its caller has gone.</summary>
    public void End(LongPoll poll)
    {
        MarkEnded(poll);
        _ended++;
    }

    /// <summary>As <see cref="End"/>, for a poll that is in its list.</summary>
    public void EndListed(LongPoll poll)
    {
        End(poll);
        _byKey.Remove(poll);
    }

    /// <summary>Forgets all polls. Returns those that had not ended; they have now.</summary>
    public IReadOnlyList<LongPoll> EndAll()
    {
        _byKey.Clear();
        if (_byEnd.Count == 0)
        {
            return [];
        }

        List<LongPoll> open = [];
        foreach ((LongPoll poll, NodeTime _) in _byEnd.UnorderedItems)
        {
            if (!poll.HasEnded)
            {
                MarkEnded(poll);
                open.Add(poll);
            }
        }

        _byEnd.Clear();
        _ended = 0;
        return open;
    }

    /// <summary>Gives the places of ended polls back when they are most of all.</summary>
    public void Tidy()
    {
        if (_ended <= EndedMin || _ended <= _byEnd.Count / 2)
        {
            return;
        }

        (LongPoll, NodeTime)[] left = [.. _byEnd.UnorderedItems.Where(static item => !item.Element.HasEnded)];
        InvariantException.Require(left.Length == Held, "ended polls are counted");
        _byEnd.Clear();
        _byEnd.EnqueueRange(left);
        _ended = 0;
    }

    private static void MarkEnded(LongPoll poll)
    {
        InvariantException.Require(!poll.HasEnded, "a long poll ends once");
        poll.HasEnded = true;
        poll.Sink.HoldBack(-1, -poll.Bytes);
    }
}

/// <summary>
/// A read whose answer is held back until something happens, in a list of those that wait for the same. Owned by a
/// <see cref="HeldPolls"/>.
/// </summary>
/// <param name="sink">Who gets the answer.</param>
/// <param name="number">The request's number there.</param>
/// <param name="key">What it waits for, as a number; for locks see <see cref="State.Locks.LockRows.Changes"/>.</param>
/// <param name="command">The read.</param>
internal sealed class LongPoll(ReplySink sink, RequestTag number, long key, byte[] command)
{
    /// <summary>What a held read takes up besides its bytes, in lists and queue.</summary>
    private const int PlaceBytes = 256;

    public ReplySink Sink => sink;

    public RequestTag Number => number;

    public long Key => key;

    public byte[] Command => command;

    /// <summary>Bytes that it takes up.</summary>
    public long Bytes => BytesOf(command.Length);

    /// <summary>Bytes that a read of this length takes up while it is held.</summary>
    public static long BytesOf(int length) => PlaceBytes + length;

    /// <summary>The one before it in its list; null for the first.</summary>
    public LongPoll? Before { get; set; }

    /// <summary>The one after it in its list; null for the last.</summary>
    public LongPoll? After { get; set; }

    /// <summary>It is answered, or its caller has gone.</summary>
    public bool HasEnded { get; set; }
}
