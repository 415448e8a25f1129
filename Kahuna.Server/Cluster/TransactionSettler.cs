using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Ends the transactions over several partitions that their coordinators have left: it has them decided by their
/// anchors, and the decision carried out by their participants. All its commands are idempotent, so it remembers
/// nothing of what it has tried: the leaders offer what stays late again. Owned by the node; any thread. Continuations
/// run in the context of the work: any thread in a server, the run's queue in the simulator.
/// </summary>
/// <param name="time">Limits the calls.</param>
/// <param name="log">Receives failures.</param>
internal sealed class TransactionSettler(TimeProvider time, ILogger log) : ITransactionSettler
{
    /// <summary>
    /// Transactions that are being settled at a time. Each has one call under way, or <see cref="FinishesAtOnce"/>.
    /// </summary>
    internal const int UnderWayMax = 16;

    /// <summary>
    /// Transactions that wait for that. More are dropped until they are offered again, a second later.
    /// </summary>
    internal const int WaitingMax = 256;

    /// <summary>Participants of one transaction that are told the decision at a time.</summary>
    internal const int FinishesAtOnce = 8;

    /// <summary>Longest time of a call: as long as an election may take.</summary>
    internal static readonly TimeSpan CallLimit = TimeSpan.FromSeconds(3);

    private readonly Lock _gate = new();
    private readonly HashSet<WorkName> _known = [];
    private readonly Queue<Work> _waiting = new();
    private readonly SilentGroups _silent = new();
    private Surroundings? _surroundings;
    private int _underWay;

    /// <summary>Settles from now on. What was offered before was dropped.</summary>
    /// <param name="execute">
    /// Executes a command here or at the leader: encoded, longest wait in ms, cancelled when nobody waits. Returns the
    /// bytes of any outcome, and takes ownership of the buffer.
    /// </param>
    /// <param name="groupOf">The index of the group of a key.</param>
    /// <param name="run">Runs work outside of the caller's turn.</param>
    /// <param name="stop">Cancelled when the node stops.</param>
    public void Start(
        Func<ByteBuffer, uint, CancellationToken, Task<byte[]>> execute,
        Func<Durability, byte[], int> groupOf,
        Action<Action> run,
        CancellationToken stop)
    {
        lock (_gate)
        {
            _surroundings = new Surroundings(execute, groupOf, run, stop);
        }
    }

    public void Settle(LateTransaction late, Durability durability)
    {
        Work work = new(late, durability);
        Surroundings? surroundings;
        lock (_gate)
        {
            surroundings = _surroundings;
            if (surroundings is null || surroundings.Stop.IsCancellationRequested || !TryRemember(work))
            {
                return;
            }

            if (_underWay == UnderWayMax)
            {
                _waiting.Enqueue(work);
                return;
            }

            if (!TryBegin(work, surroundings))
            {
                return;
            }

            _underWay++;
        }

        surroundings.Run(() => _ = WorkAsync(surroundings, work));
    }

    /// <summary>False when it is known already, or there is no room for it.</summary>
    private bool TryRemember(Work work) =>
        (_underWay < UnderWayMax || _waiting.Count < WaitingMax) && _known.Add(work.Name);

    /// <summary>False: it needs a group that is silent. It is dropped until it is offered again.</summary>
    private bool TryBegin(Work work, Surroundings surroundings)
    {
        LateTransaction late = work.Late;
        int[]? tries = _silent.TryBegin(
        [
            surroundings.GroupOf(Durability.Persistent, late.AnchorKey),
            .. late.Participants.Select(
                participant => surroundings.GroupOf(participant.Durability, participant.Key)),
        ]);
        work.Tries = tries ?? [];
        bool begins = tries is not null;
        if (!begins)
        {
            _known.Remove(work.Name);
        }

        return begins;
    }

    /// <summary>Settles one after the other until none waits.</summary>
    private async Task WorkAsync(Surroundings surroundings, Work first)
    {
        for (Work? work = first; work is not null; work = Next(work))
        {
            LateTransaction late = work.Late;
            try
            {
                await (late.IsRecord
                    ? SettleRecordAsync(surroundings, late)
                    : SettlePartAsync(surroundings, late, work.Durability));
            }
            catch (Exception) when (surroundings.Stop.IsCancellationRequested)
            {
                // The node stops; others settle it.
            }
            catch (Exception error)
            {
                log.SettlingFailed(late.Id, error);
            }
        }
    }

    private Work? Next(Work ended)
    {
        lock (_gate)
        {
            _known.Remove(ended.Name);
            _silent.End(ended.Tries);
            while (!_surroundings!.Stop.IsCancellationRequested && _waiting.TryDequeue(out Work? next))
            {
                if (TryBegin(next, _surroundings))
                {
                    return next;
                }
            }

            _underWay--;
            return null;
        }
    }

    private async Task SettlePartAsync(Surroundings surroundings, LateTransaction late, Durability durability)
    {
        if (await DecideAsync(surroundings, late) is { } decision)
        {
            await FinishAsync(surroundings, late.Id, decision, durability, late.PartKey);
        }
    }

    /// <summary>
    /// A decision to commit that is found only now is not forgotten: its coordinator may not know it yet. It is offered
    /// again when it is old. An abort may be forgotten at once, because it is what an unknown transaction is told.
    /// </summary>
    private async Task SettleRecordAsync(Surroundings surroundings, LateTransaction late)
    {
        bool isOld = late.Decision != TransactionDecision.Pending;
        if ((isOld ? late.Decision : await DecideAsync(surroundings, late)) is not { } decision
            || !await FinishAllAsync(surroundings, late, decision)
            || !(isOld || decision == TransactionDecision.Abort))
        {
            return;
        }

        ByteBuffer forget = Encode(CommandKind.TransactionForget, Durability.Persistent, late.AnchorKey, late.Id);
        Report(late.Id, "forget", await CallAsync(surroundings, forget));
    }

    /// <summary>The decision that counts; null when the anchor did not say.</summary>
    private async Task<TransactionDecision?> DecideAsync(Surroundings surroundings, LateTransaction late)
    {
        ByteBuffer decide = Encode(
            CommandKind.TransactionDecide,
            Durability.Persistent,
            late.AnchorKey,
            late.Id,
            TransactionDecision.Abort);
        Reply reply = await CallAsync(surroundings, decide);
        if (reply.Status == OutcomeStatus.Applied
            && (TransactionDecision)reply.Number is var decision
                and (TransactionDecision.Then or TransactionDecision.Else or TransactionDecision.Abort))
        {
            return decision;
        }

        Report(late.Id, "decide", reply);
        return null;
    }

    /// <summary>True when all participants have carried out the decision. Ends at the first that cannot.</summary>
    private async Task<bool> FinishAllAsync(
        Surroundings surroundings, LateTransaction late, TransactionDecision decision)
    {
        foreach ((Durability Durability, byte[] Key)[] some in late.Participants.Chunk(FinishesAtOnce))
        {
            bool[] ends = await Task.WhenAll(some.Select(
                participant => FinishAsync(
                    surroundings, late.Id, decision, participant.Durability, participant.Key)));
            if (ends.Contains(false))
            {
                return false;
            }
        }

        return true;
    }

    private async Task<bool> FinishAsync(
        Surroundings surroundings, TransactionId id, TransactionDecision decision, Durability durability, byte[] key)
    {
        ByteBuffer finish = Encode(CommandKind.TransactionFinish, durability, key, id, decision);
        return Report(id, "finish", await CallAsync(surroundings, finish));
    }

    /// <summary>True when the step was carried out, now or before; logs another outcome.</summary>
    private bool Report(TransactionId id, string step, Reply reply)
    {
        bool isDone = reply.Status is OutcomeStatus.Applied or OutcomeStatus.NotFound;
        if (!isDone)
        {
            log.NotSettled(id, step, reply.Status.ToString(), reply.Sentence);
        }

        return isDone;
    }

    private async Task<Reply> CallAsync(Surroundings surroundings, ByteBuffer command)
    {
        using CancellationTokenSource limit = new(CallLimit, time);
        using CancellationTokenSource end = CancellationTokenSource.CreateLinkedTokenSource(
            limit.Token, surroundings.Stop);
        Command.TryRead(command.Written, out Command asked);
        int group = surroundings.GroupOf(asked.Durability, asked.Key.ToArray());
        Reply reply;
        try
        {
            reply = Reply.Of(await surroundings.Execute(command, (uint)CallLimit.TotalMilliseconds, end.Token));
        }
        catch (OperationCanceledException) when (!surroundings.Stop.IsCancellationRequested)
        {
            reply = new Reply(OutcomeStatus.Unknown, 0, "no answer in time");
        }

        lock (_gate)
        {
            _silent.Report(
                group,
                reply.Status is not (OutcomeStatus.Unknown or OutcomeStatus.Unavailable or OutcomeStatus.Expired));
        }

        return reply;
    }

    private static ByteBuffer Encode(
        CommandKind kind,
        Durability durability,
        byte[] key,
        TransactionId id,
        TransactionDecision decision = TransactionDecision.Pending)
    {
        Span<byte> value = stackalloc byte[TransactionId.Bytes];
        id.Write(value);
        Command command = new()
        {
            Kind = kind,
            Durability = durability,
            Flags = decision == TransactionDecision.Pending ? CommandFlags.None : CommandFlags.Number,
            Key = key,
            Number = (long)decision,
            Value = value,
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return buffer;
    }

    private sealed record Surroundings(
        Func<ByteBuffer, uint, CancellationToken, Task<byte[]>> Execute,
        Func<Durability, byte[], int> GroupOf,
        Action<Action> Run,
        CancellationToken Stop);

    /// <summary>What is settled: a record, or one part.</summary>
    private sealed class Work(LateTransaction late, Durability durability)
    {
        public LateTransaction Late { get; } = late;

        /// <summary>Of the group that offers it.</summary>
        public Durability Durability { get; } = durability;

        /// <summary>The silent groups that it tries.</summary>
        public int[] Tries { get; set; } = [];

        public WorkName Name { get; } = new(
            late.Id, late.IsRecord, durability, Encoding.Latin1.GetString(late.PartKey));
    }

    private readonly record struct WorkName(TransactionId Id, bool IsRecord, Durability Durability, string Key);

    private readonly record struct Reply(OutcomeStatus Status, long Number, string? Sentence)
    {
        public static Reply Of(byte[] bytes) => Outcome.TryRead(bytes, out Outcome outcome)
            ? new Reply(
                outcome.Status,
                outcome.Number,
                outcome.Status >= OutcomeStatus.InvalidArgument ? Encoding.UTF8.GetString(outcome.Value) : null)
            : new Reply(OutcomeStatus.Internal, 0, "the outcome is malformed");
    }
}
