using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The locks of one partition: claims that hold a lock and claims that wait for it, first come first served. A claim's
/// number is its fencing token: claims of one lock are granted in the order of their numbers, which grow over
/// everything that happens to the partition. A lock that nobody holds or waits for leaves nothing behind. No lease ends
/// but by a command, and the next claim gets the lock with the same command. Where a command lets in more than
/// <see cref="GrantsPerCommand"/> claims, the others follow with the next commands, in their order: no command does
/// unbounded work. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class LockTable : CommandHandler
{
    /// <summary>
    /// Claims that one command of a client grants, or gives up because their wait is over: each costs about as much as
    /// two sets.
    /// </summary>
    public const int GrantsPerCommand = 8;

    /// <summary>
    /// Leases that one sweep ends, claims that it decides about, and claims that it grants: bounded work per command.
    /// </summary>
    public const int StepsPerSweep = 16;

    private readonly KeyStore _store;
    private readonly StateLimits _limits;
    private long _expired;

    public LockTable(KeyStore store, StateLimits limits)
    {
        _store = store;
        _limits = limits;
        Rows = new LockRows(store, limits);
    }

    /// <summary>
    /// The state begins empty after another one was lost, whose leases may go on until this cluster time. It is part of
    /// the state: the row <c>0xFF E</c>.
    /// </summary>
    public void BeginAfter(ClusterTime leasesBefore) => Rows.SetLeasesBefore(leasesBefore);

    /// <summary>What everything lies in, and what has changed there.</summary>
    public LockRows Rows { get; }

    /// <summary>Bytes of what is found by token, which lies outside of the rows.</summary>
    public long IndexBytes => Rows.Claims.Bytes;

    private ExpiryHeap Leases => _store.Heaps[RowHeap.Leases];

    private ExpiryHeap Waiters => _store.Heaps[RowHeap.Waiters];

    private ExpiryHeap Grants => _store.Heaps[RowHeap.Grants];

    public LockMetrics Metrics => new(Leases.Count, Waiters.Count, _expired);

    /// <summary>
    /// True when some lease has ended at a time, or claims are still to be granted: the leader then proposes a sweep.
    /// </summary>
    public bool HasWork(ClusterTime now) => HasGrants || Leases.AnyPassed(now);

    /// <summary>Claims are still to be granted.</summary>
    public bool HasGrants => Grants.Count > 0;

    /// <summary>
    /// Steps that sweeps have to do at a time, as far as it can be told, and at most <paramref name="countMax"/>:
    /// leases to end, and claims of the first lock that are to be granted.
    /// </summary>
    public int StepsDue(ClusterTime now, int countMax, List<Row> scratch)
    {
        scratch.Clear();
        Leases.CollectPassed(now, countMax, scratch);
        return Math.Min(countMax, scratch.Count + (HasGrants ? Rows.LockAt(Grants.First).Waiters : 0));
    }

    /// <summary>The claims that are to be looked after, in no order.</summary>
    public void CollectDueWaiters(ClusterTime now, int countMax, List<Row> rows) =>
        Waiters.CollectPassed(now, countMax, rows);

    /// <summary>A claim that waits, by its row.</summary>
    public (FencingToken Token, ClusterTime WaitEnd) Waiter(Row row) =>
        (Rows.ClaimAt(row).Token, Rows.ClaimAt(row).WaitEnd);

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        if (command.Kind == CommandKind.LockSweep)
        {
            Sweep sweep = new(in command);
            Sweep(time, sweep.StepsMax, sweep.Decisions);
            return;
        }

        Outcome outcome = Apply(in command, time);
        answer.Give(in outcome);
    }

    /// <inheritdoc/>
    public override bool Read(
        scoped in Command command, ClusterTime time, ClusterTime now, KnownHash known, ByteBuffer outcome) =>
        LockReader.Read(_store, this, in command, now, outcome);

    private Outcome Apply(scoped in Command command, ClusterTime time) => command.Kind switch
    {
        CommandKind.LockAcquire => Acquire(new LockAcquire(in command), time),
        CommandKind.LockExtend => Extend(new LockExtend(in command), time),
        CommandKind.LockRelease => Release(new LockRelease(in command), time),
        _ => throw NoSuchCommand(command.Kind),
    };

    private Outcome Acquire(scoped in LockAcquire asked, ClusterTime time)
    {
        bool isRead = LockBody.TryRead(asked.Form, out LockBody form);
        InvariantException.Require(isRead, "the door lets only claims pass that decode");
        Row row = Rows.Find(asked.Resource);
        Row own = row.IsNone ? Row.None : Rows.FindClaim(row, form.Owner);
        return own.IsNone ? AcquireNew(row, in asked, in form, time) : AcquireAgain(own, in asked, in form, time);
    }

    private Outcome Extend(scoped in LockExtend asked, ClusterTime time)
    {
        Row row = Rows.Find(asked.Resource);
        Row claim = ClaimOf(row, asked.Owner, asked.Token);
        return !claim.IsNone && _store.Keys[claim].IsHeld
            ? Renew(claim, asked.LeaseMs, time)
            : LockOutcome.Refused(TokenOfFirst(row));
    }

    private Outcome Release(scoped in LockRelease asked, ClusterTime time)
    {
        Row row = Rows.Find(asked.Resource);
        Row claim = ClaimOf(row, asked.Owner, asked.Token);
        if (claim.IsNone || (asked.OnlyPlace && _store.Keys[claim].IsHeld))
        {
            return LockOutcome.Refused(TokenOfFirst(row));
        }

        Remove(claim, time, GrantsPerCommand);
        return LockOutcome.Released(asked.Token);
    }

    /// <summary>The owner's claim under this token; 0 when there is none.</summary>
    private Row ClaimOf(Row row, ReadOnlySpan<byte> owner, FencingToken token) =>
        !row.IsNone && Rows.FindClaim(row, owner) is { IsNone: false } claim && Rows.ClaimAt(claim).Token == token
            ? claim
            : Row.None;

    private FencingToken TokenOfFirst(Row row) => row.IsNone ? FencingToken.None : Rows.TokenOfFirst(row);

    /// <summary>
    /// Grants what is still to be granted, ends leases that have passed, the earliest first, at most this many of both
    /// together, and does what was decided about those who wait. Each end and each decision grants at most one claim;
    /// where more have come to their turn, they are left to the next sweep.
    /// </summary>
    public void Sweep(ClusterTime time, long countMax, ReadOnlySpan<byte> decisions)
    {
        long steps = 0;
        while (steps < countMax && HasGrants)
        {
            steps += Grant(Grants.First, time, (int)(countMax - steps));
        }

        for (; steps < countMax && Leases.AnyPassed(time); steps++)
        {
            Remove(Leases.First, time, 1);
            _expired++;
        }

        for (; decisions.Length >= WaiterDecision.Bytes; decisions = decisions[WaiterDecision.Bytes..])
        {
            WaiterDecision decision = WaiterDecision.Read(decisions);
            if (!IsDue(in decision, time))
            {
                // Gone, granted, or asked for again since it was decided.
                continue;
            }

            if (decision.AgainMs == 0)
            {
                Remove(decision.Row, time, 1);
            }
            else
            {
                _store.System.SetTime(
                    decision.Row, ClusterTime.Min(Rows.ClaimAt(decision.Row).WaitEnd, time + decision.AgainMs));
            }
        }
    }

    /// <summary>The claim that a decision is about still waits, and it is time to look after it.</summary>
    private bool IsDue(in WaiterDecision decision, ClusterTime time)
    {
        if (decision.Row < Row.First || decision.Row.Value > _store.Keys.Count)
        {
            return false;
        }

        ref readonly KeyEntry entry = ref _store.Keys[decision.Row];
        return entry is { IsClaim: true, IsHeld: false }
            && Rows.ClaimAt(decision.Row).Token == decision.Token
            && Waiters.HasPassed(in entry, time);
    }

    /// <summary>True while the token's holder has the lock.</summary>
    public bool IsCurrent(ReadOnlySpan<byte> name, FencingToken token)
    {
        Row claim = Rows.Claims.Find(token);
        return !claim.IsNone && _store.Keys[claim].IsHeld && Rows.Find(name) == Rows.ClaimAt(claim).Lock;
    }

    /// <summary>The lowest token that has the lock; none when nobody does.</summary>
    public FencingToken CurrentToken(ReadOnlySpan<byte> name) => TokenOfFirst(Rows.Find(name));

    /// <summary>
    /// True for a fenced command with a token that has its lock. Another one is refused here.
    /// </summary>
    public bool PassesFence(scoped in Command command, CommandAnswer answer)
    {
        if (IsCurrent(command.FenceName, new FencingToken(command.FenceToken)))
        {
            return true;
        }

        answer.Give(LockOutcome.FenceFailed(CurrentToken(command.FenceName)));
        return false;
    }

    private Outcome AcquireNew(Row row, scoped in LockAcquire asked, scoped in LockBody form, ClusterTime time)
    {
        if (!row.IsNone && Rows.LockAt(row).Permits != form.Permits)
        {
            return LockOutcome.ModeDiffers(Rows.TokenOfFirst(row), Rows.LockAt(row).Permits);
        }

        if (!row.IsNone && Rows.LockAt(row).Holders + Rows.LockAt(row).Waiters >= _limits.ClaimsPerLockMax)
        {
            return new Outcome(OutcomeStatus.LockFull);
        }

        bool isFree = row.IsNone
            ? time >= Rows.LeasesBefore
            : Rows.LockAt(row).Waiters == 0 && Admits(row, form.Mode);
        if (!isFree && !asked.Waits)
        {
            ClusterTime end = row.IsNone ? Rows.LeasesBefore : EndOfFirst(row, time);
            return LockOutcome.Refused(TokenOfFirst(row), end.Ms);
        }

        if (row.IsNone)
        {
            row = Rows.CreateLock(asked.Resource, form.Permits);
            if (!isFree)
            {
                // Somebody may have had it in the epoch before.
                Rows.Hold(
                    row,
                    Rows.CreateClaim(row, new LockBody { Mode = LockMode.Exclusive }, 0, default),
                    Rows.LeasesBefore);
            }
        }

        Row claim = Rows.CreateClaim(row, in form, asked.LeaseMs, time + asked.WaitMs);
        FencingToken token = Rows.ClaimAt(claim).Token;
        if (isFree)
        {
            Rows.Hold(row, claim, time + asked.LeaseMs);
            return LockOutcome.Held(token, (time + asked.LeaseMs).Ms);
        }

        Rows.Enqueue(row, claim, time);
        return LockOutcome.Queued(token, time.Ms);
    }

    /// <summary>The owner has a claim: a lease is renewed, a wait begins anew at its place in the queue.</summary>
    private Outcome AcquireAgain(Row claim, scoped in LockAcquire asked, scoped in LockBody form, ClusterTime time)
    {
        FencingToken token = Rows.ClaimAt(claim).Token;
        Row row = Rows.ClaimAt(claim).Lock;
        if (Rows.ClaimAt(claim).Mode != form.Mode || Rows.LockAt(row).Permits != form.Permits)
        {
            return LockOutcome.ModeDiffers(token, Rows.LockAt(row).Permits);
        }

        if (_store.Keys[claim].IsHeld)
        {
            return Renew(claim, asked.LeaseMs, time);
        }

        if (!asked.Waits)
        {
            return LockOutcome.Refused(Rows.TokenOfFirst(row), EndOfFirst(row, time).Ms);
        }

        ClaimRow changed = new(_store.System.Open(claim));
        changed.LeaseMs = (int)asked.LeaseMs;
        changed.WaitEnd = time + asked.WaitMs;
        _store.System.Close(claim);
        _store.System.SetTime(claim, ClusterTime.Min(time + asked.WaitMs, time + _limits.WaiterCheckMs));
        return LockOutcome.Queued(token, time.Ms);
    }

    /// <summary>A lease never ends earlier than it was promised.</summary>
    private Outcome Renew(Row claim, long leaseMs, ClusterTime time)
    {
        ClusterTime end = ClusterTime.Max(_store.DeadlineOf(in _store.Keys[claim]), time + leaseMs);
        _store.System.SetTime(claim, end);
        return LockOutcome.Held(Rows.ClaimAt(claim).Token, end.Ms);
    }

    private bool Admits(Row row, LockMode mode)
    {
        LockRow at = Rows.LockAt(row);
        return at.FirstHolder.IsNone
            || (mode == Rows.ClaimAt(at.FirstHolder).Mode
                && (mode == LockMode.Shared || (mode == LockMode.Permit && at.Holders < at.Permits)));
    }

    /// <summary>
    /// End of the first holder's lease; the time when nobody holds the lock yet, because those who are next are still
    /// to be granted.
    /// </summary>
    private ClusterTime EndOfFirst(Row row, ClusterTime time) =>
        Rows.LockAt(row).FirstHolder is { IsNone: false } first ? _store.DeadlineOf(in _store.Keys[first]) : time;

    /// <summary>Takes a claim out of its lock; the next claims then get it, at most this many at once.</summary>
    private void Remove(Row claim, ClusterTime time, int grantsMax)
    {
        Row row = Rows.ClaimAt(claim).Lock;
        Rows.Note(Rows.ClaimAt(claim).Token);
        Rows.Unlink(row, claim);
        Rows.FreeClaim(claim);
        Grant(row, time, grantsMax);
    }

    /// <summary>
    /// Grants the lock to the first claims of its queue that may hold it together, at most this many.
    /// Nobody gets it who has waited long enough. A lock with more to grant stands among those with grants to come
    /// afterwards, and one without claims goes. How many claims were granted or given up; 1 when none was.
    /// </summary>
    private int Grant(Row row, ClusterTime time, int countMax)
    {
        int steps = 0;
        while (Rows.LockAt(row).FirstWaiter is { IsNone: false } next)
        {
            ClaimRow claim = Rows.ClaimAt(next);
            bool isOver = claim.WaitEnd <= time;
            if (!isOver && !Admits(row, claim.Mode))
            {
                break;
            }

            if (steps == countMax)
            {
                GrantLater(row, time);
                return steps;
            }

            steps++;
            Rows.Note(claim.Token);
            Rows.Unlink(row, next);
            if (isOver)
            {
                Rows.FreeClaim(next);
            }
            else
            {
                Rows.Hold(row, next, time + claim.LeaseMs);
            }
        }

        _store.System.ClearTime(row);
        if (Rows.LockAt(row).FirstHolder.IsNone)
        {
            InvariantException.Require(
                Rows.LockAt(row) is { Holders: 0, Waiters: 0 }, "a lock that goes has no claims");
            _store.System.Free(row);
        }

        return Math.Max(1, steps);
    }

    /// <summary>
    /// The lock has claims that are still to be granted: a sweep goes on with them, the locks that came first first.
    /// </summary>
    private void GrantLater(Row row, ClusterTime time)
    {
        if (_store.Keys[row].ExpirySlot == 0)
        {
            _store.System.SetTime(row, time);
        }
    }
}
