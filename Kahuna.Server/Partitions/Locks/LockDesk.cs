using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;

namespace Kahuna.Server.Partitions.Locks;

/// <summary>
/// A leader's part in locks besides replicating them: holds answers back until there is something to say, so that nobody has to ask again and again, and finds out which leases have ended and which
/// claims wait for nobody any more. Owned by a partition's <see cref="ClientDesk"/>; not thread-safe.
/// </summary>
internal sealed class LockDesk(LoopOptions options, TurnOutput output, StateDesk states)
{
    /// <summary>Answers of one stream or call that are held back at a time; less than it may have in flight, so that what ends the wait still gets through.</summary>
    private const int HeldPerSinkMax = Client.Wire.Limits.InFlightPerStreamMax / 2;

    /// <summary>So many answered reads are not worth a look.</summary>
    private const int AnsweredMin = 1024;

    private readonly Dictionary<long, HeldRead> _held = [];
    private readonly PriorityQueue<HeldRead, long> _byEnd = new();
    private readonly Dictionary<long, long> _seenMs = [];
    private readonly List<int> _due = [];
    private int _answered;
    private long _knowsSinceMs;

    private LockTable Table => states.State.Locks;

    /// <summary>Answers that are held back.</summary>
    public int Held => _held.Count;

    /// <summary>This node leads, or has stood still: who waits will let hear of itself.</summary>
    public void BeginServing() => _knowsSinceMs = output.NowMs;

    /// <summary>Answers a read about a lock, now or later.</summary>
    public void Serve(ReplySink sink, uint number, ReadOnlySpan<byte> bytes, long clusterMs)
    {
        Command command = Decode(bytes);
        bool mayHold = command.Kind is CommandKind.LockAwait or CommandKind.LockObserve;
        if (!TryAnswer(sink, number, in command, clusterMs, isLast: !mayHold || command.Number == 0 || sink.HeldBack >= HeldPerSinkMax))
        {
            long key = command.Kind == CommandKind.LockAwait ? command.ComparedRevision : LockRows.WatchKey(command.Key);
            HeldRead read = new(sink, number, key, bytes.ToArray(), _held.GetValueOrDefault(key));
            sink.HoldBack(1);
            _held[key] = read;
            _byEnd.Enqueue(read, output.NowMs + command.Number);
            Table.Rows.IsWatched = true;
        }
    }

    /// <summary>Answers what has something to say since commands were applied.</summary>
    public void ServeChanges(long clusterMs)
    {
        List<long> changes = Table.Rows.Changes;
        for (int i = 0; i < changes.Count; i++)
        {
            _seenMs.Remove(changes[i]);
            if (_held.Remove(changes[i], out HeldRead? read))
            {
                Serve(read, clusterMs);
            }
        }

        changes.Clear();
        Tidy();
    }

    /// <summary>A tick: answers what was held back long enough.</summary>
    public void Tick(long clusterMs)
    {
        while (_byEnd.TryPeek(out HeldRead? read, out long endMs) && endMs <= output.NowMs)
        {
            _byEnd.Dequeue();
            if (!read.IsAnswered)
            {
                Remove(read);
                TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterMs, isLast: true);
                End(read);
            }

            _answered--;
        }
    }

    /// <summary>The sweep that is due; null: none. The caller takes the buffer over.</summary>
    public ByteBuffer? Sweep(long clusterMs, CommandDurability durability)
    {
        _due.Clear();
        Table.CollectDueWaiters(clusterMs, options.SweepKeysMax, _due);
        if (_due.Count == 0 && !Table.HasEnded(clusterMs))
        {
            return null;
        }

        ByteBuffer decisions = ByteBuffer.Rent();
        foreach (int row in _due)
        {
            (long token, long waitEndMs) = Table.Waiter(row);
            new WaiterDecision(row, token, waitEndMs <= clusterMs ? 0 : AgainMs(token)).Write(decisions);
        }

        Command sweep = new() { Kind = CommandKind.LockSweep, Durability = durability, Flags = CommandFlags.Number, Number = options.SweepKeysMax, Value = decisions.Written };
        ByteBuffer command = ByteBuffer.Rent(sweep.EncodedBytes);
        sweep.Write(command);
        decisions.Return();
        return command;
    }

    /// <summary>Answers everything that is held back in the same way: this node leads no more, or stops.</summary>
    public void Drop(OutcomeStatus status, long number)
    {
        foreach (HeldRead first in _held.Values)
        {
            for (HeldRead? read = first; read is not null; read = read.Next)
            {
                output.Reply(read.Sink, read.Number, new Outcome(status, number: number));
                End(read);
            }
        }

        _held.Clear();
        _byEnd.Clear();
        _answered = 0;
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

        // Whoever leads since a short time ago has not heard of everybody yet.
        long seenMs = Math.Max(_knowsSinceMs, _seenMs.GetValueOrDefault(token));
        return (int)Math.Clamp(seenMs + options.StateLimits.WaiterCheckMs - output.NowMs, 0, options.StateLimits.WaiterCheckMs);
    }

    /// <summary>Somebody is there whose answer is held back. Those whose connection is lost are dropped: they may come back on another one.</summary>
    private bool IsAwaited(long token)
    {
        if (!_held.TryGetValue(token, out HeldRead? read))
        {
            return false;
        }

        HeldRead? kept = null;
        while (read is not null)
        {
            HeldRead? next = read.Next;
            if (read.Sink.IsClosed)
            {
                End(read);
            }
            else
            {
                read.Next = kept;
                kept = read;
            }

            read = next;
        }

        if (kept is null)
        {
            _held.Remove(token);
        }
        else
        {
            _held[token] = kept;
        }

        return kept is not null;
    }

    private void See(long token)
    {
        _seenMs[token] = output.NowMs;
        Table.Rows.IsWatched = true;
    }

    /// <summary>Answers those that wait for one thing, or goes on holding them back.</summary>
    private void Serve(HeldRead? read, long clusterMs)
    {
        while (read is not null)
        {
            HeldRead? next = read.Next;
            if (TryAnswer(read.Sink, read.Number, Decode(read.Command), clusterMs, isLast: false))
            {
                End(read);
            }
            else
            {
                read.Next = _held.GetValueOrDefault(read.Key);
                _held[read.Key] = read;
            }

            read = next;
        }
    }

    private bool TryAnswer(ReplySink sink, uint number, scoped in Command command, long clusterMs, bool isLast)
    {
        ByteBuffer outcome = ByteBuffer.Rent();
        bool answers = states.State.Read(in command, clusterMs, outcome) || isLast;
        if ((OutcomeStatus)outcome.Written[0] == OutcomeStatus.Queued && !sink.IsClosed)
        {
            See(command.ComparedRevision);
        }

        if (answers)
        {
            ByteBuffer frame = output.BeginReply(sink, number, out int at);
            frame.Append(outcome.Written);
            output.EndReply(sink, frame, at);
        }

        outcome.Return();
        return answers;
    }

    /// <summary>Takes one out of those that wait for the same.</summary>
    private void Remove(HeldRead read)
    {
        HeldRead? first = _held.GetValueOrDefault(read.Key);
        if (first == read)
        {
            _held.Remove(read.Key);
            if (read.Next is not null)
            {
                _held[read.Key] = read.Next;
            }

            return;
        }

        while (first is not null && first.Next != read)
        {
            first = first.Next;
        }

        first?.Next = read.Next;
    }

    private void End(HeldRead read)
    {
        read.IsAnswered = true;
        read.Sink.HoldBack(-1);
        _answered++;
    }

    /// <summary>Answered reads go when they are most of those that wait for their time.</summary>
    private void Tidy()
    {
        if (_answered <= AnsweredMin || _answered <= _byEnd.Count / 2)
        {
            return;
        }

        (HeldRead, long)[] left = [.. _byEnd.UnorderedItems.Where(static item => !item.Element.IsAnswered)];
        _byEnd.Clear();
        _byEnd.EnqueueRange(left);
        _answered = 0;
    }

    private static Command Decode(ReadOnlySpan<byte> bytes)
    {
        bool decodes = Command.TryRead(bytes, out Command command);
        InvariantException.Require(decodes, "a read that passed the door decodes");
        return command;
    }
}
