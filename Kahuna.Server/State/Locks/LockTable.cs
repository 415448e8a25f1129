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
/// but by a command, and whoever is next has the lock with the same command. Where a command lets in more than
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
    public void BeginAfter(long leasesBeforeMs) => Rows.SetLeasesBefore(leasesBeforeMs);

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
    public bool HasWork(long nowMs) => HasGrants || Leases.AnyPassed(nowMs);

    /// <summary>Claims are still to be granted.</summary>
    public bool HasGrants => Grants.Count > 0;

    /// <summary>
    /// Steps that sweeps have to do at a time, as far as it can be told, and at most <paramref name="countMax"/>:
    /// leases to end, and claims of the first lock that are to be granted.
    /// </summary>
    public int StepsDue(long nowMs, int countMax, List<int> scratch)
    {
        scratch.Clear();
        Leases.CollectPassed(nowMs, countMax, scratch);
        return Math.Min(countMax, scratch.Count + (HasGrants ? Rows.LockAt(Grants.First).Waiters : 0));
    }

    /// <summary>The claims that are to be looked after, in no order.</summary>
    public void CollectDueWaiters(long nowMs, int countMax, List<int> rows) =>
        Waiters.CollectPassed(nowMs, countMax, rows);

    /// <summary>A claim that waits, by its row.</summary>
    public (FencingToken Token, long WaitEndMs) Waiter(int row) =>
        (Rows.ClaimAt(row).Token, Rows.ClaimAt(row).WaitEndMs);

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, long timeMs, KnownHash known, CommandAnswer answer)
    {
        if (command.Kind == CommandKind.LockSweep)
        {
            Sweep sweep = new(in command);
            Sweep(timeMs, sweep.StepsMax, sweep.Decisions);
            return;
        }

        Outcome outcome = Apply(in command, timeMs);
        answer.Give(in outcome);
    }

    /// <inheritdoc/>
    public override bool Read(
        scoped in Command command, long timeMs, long nowMs, KnownHash known, ByteBuffer outcome) =>
        LockReader.Read(_store, this, in command, nowMs, outcome);

    private Outcome Apply(scoped in Command command, long timeMs) => command.Kind switch
    {
        CommandKind.LockAcquire => Acquire(new LockAcquire(in command), timeMs),
        CommandKind.LockExtend => Extend(new LockExtend(in command), timeMs),
        CommandKind.LockRelease => Release(new LockRelease(in command), timeMs),
        _ => throw NoSuchCommand(command.Kind),
    };

    private Outcome Acquire(scoped in LockAcquire asked, long timeMs)
    {
        bool isRead = LockBody.TryRead(asked.Form, out LockBody form);
        InvariantException.Require(isRead, "the door lets only claims pass that decode");
        int row = Rows.Find(asked.Resource);
        int own = row == 0 ? 0 : Rows.FindClaim(row, form.Owner);
        return own == 0 ? AcquireNew(row, in asked, in form, timeMs) : AcquireAgain(own, in asked, in form, timeMs);
    }

    private Outcome Extend(scoped in LockExtend asked, long timeMs)
    {
        int row = Rows.Find(asked.Resource);
        int claim = ClaimOf(row, asked.Owner, asked.Token);
        return claim != 0 && _store.Keys[claim].IsHeld
            ? Renew(claim, asked.LeaseMs, timeMs)
            : LockOutcome.Refused(TokenOfFirst(row));
    }

    private Outcome Release(scoped in LockRelease asked, long timeMs)
    {
        int row = Rows.Find(asked.Resource);
        int claim = ClaimOf(row, asked.Owner, asked.Token);
        if (claim == 0 || (asked.OnlyPlace && _store.Keys[claim].IsHeld))
        {
            return LockOutcome.Refused(TokenOfFirst(row));
        }

        Remove(claim, timeMs, GrantsPerCommand);
        return LockOutcome.Released(asked.Token);
    }

    /// <summary>The owner's claim under this token; 0 when there is none.</summary>
    private int ClaimOf(int row, ReadOnlySpan<byte> owner, FencingToken token) =>
        row != 0 && Rows.FindClaim(row, owner) is var claim and not 0 && Rows.ClaimAt(claim).Token == token ? claim : 0;

    private FencingToken TokenOfFirst(int row) => row == 0 ? FencingToken.None : Rows.TokenOfFirst(row);

    /// <summary>
    /// Grants what is still to be granted, ends leases that have passed, the earliest first, at most so many of both
    /// together, and does what was decided about those who wait. Each end and each decision grants at most one claim;
    /// where more have come to their turn, they are left to the next sweep.
    /// </summary>
    public void Sweep(long timeMs, long countMax, ReadOnlySpan<byte> decisions)
    {
        long steps = 0;
        while (steps < countMax && HasGrants)
        {
            steps += Grant(Grants.First, timeMs, (int)(countMax - steps));
        }

        for (; steps < countMax && Leases.AnyPassed(timeMs); steps++)
        {
            Remove(Leases.First, timeMs, 1);
            _expired++;
        }

        for (; decisions.Length >= WaiterDecision.Bytes; decisions = decisions[WaiterDecision.Bytes..])
        {
            WaiterDecision decision = WaiterDecision.Read(decisions);
            if (!IsDue(in decision, timeMs))
            {
                // Gone, granted, or asked for again since it was decided.
                continue;
            }

            if (decision.AgainMs == 0)
            {
                Remove(decision.Row, timeMs, 1);
            }
            else
            {
                _store.System.SetTime(
                    decision.Row, Math.Min(Rows.ClaimAt(decision.Row).WaitEndMs, timeMs + decision.AgainMs));
            }
        }
    }

    /// <summary>The claim that a decision is about still waits, and it is time to look after it.</summary>
    private bool IsDue(in WaiterDecision decision, long timeMs)
    {
        if (decision.Row < 1 || decision.Row > _store.Keys.Count)
        {
            return false;
        }

        ref readonly KeyEntry entry = ref _store.Keys[decision.Row];
        return entry is { IsClaim: true, IsHeld: false }
            && Rows.ClaimAt(decision.Row).Token == decision.Token
            && Waiters.HasPassed(in entry, timeMs);
    }

    /// <summary>True while the token's holder has the lock.</summary>
    public bool IsCurrent(ReadOnlySpan<byte> name, FencingToken token)
    {
        int claim = Rows.Claims.Find(token);
        return claim != 0 && _store.Keys[claim].IsHeld && Rows.Find(name) == Rows.ClaimAt(claim).Lock;
    }

    /// <summary>The lowest token that has the lock; none when nobody does.</summary>
    public FencingToken CurrentToken(ReadOnlySpan<byte> name) => TokenOfFirst(Rows.Find(name));

    private Outcome AcquireNew(int row, scoped in LockAcquire asked, scoped in LockBody form, long timeMs)
    {
        if (row != 0 && Rows.LockAt(row).Permits != form.Permits)
        {
            return LockOutcome.ModeDiffers(Rows.TokenOfFirst(row), Rows.LockAt(row).Permits);
        }

        if (row != 0 && Rows.LockAt(row).Holders + Rows.LockAt(row).Waiters >= _limits.ClaimsPerLockMax)
        {
            return new Outcome(OutcomeStatus.LockFull);
        }

        bool isFree = row == 0
            ? timeMs >= Rows.LeasesBeforeMs
            : Rows.LockAt(row).Waiters == 0 && Admits(row, form.Mode);
        if (!isFree && !asked.Waits)
        {
            return LockOutcome.Refused(TokenOfFirst(row), row == 0 ? Rows.LeasesBeforeMs : EndOfFirst(row, timeMs));
        }

        if (row == 0)
        {
            row = Rows.CreateLock(asked.Resource, form.Permits);
            if (!isFree)
            {
                // Somebody may have had it in the epoch before.
                Rows.Hold(
                    row, Rows.CreateClaim(row, new LockBody { Mode = LockMode.Exclusive }, 0, 0), Rows.LeasesBeforeMs);
            }
        }

        int claim = Rows.CreateClaim(row, in form, asked.LeaseMs, timeMs + asked.WaitMs);
        FencingToken token = Rows.ClaimAt(claim).Token;
        if (isFree)
        {
            Rows.Hold(row, claim, timeMs + asked.LeaseMs);
            return LockOutcome.Held(token, timeMs + asked.LeaseMs);
        }

        Rows.Enqueue(row, claim, timeMs);
        return LockOutcome.Queued(token, timeMs);
    }

    /// <summary>The owner has a claim: a lease is renewed, a wait begins anew at its place in the queue.</summary>
    private Outcome AcquireAgain(int claim, scoped in LockAcquire asked, scoped in LockBody form, long timeMs)
    {
        FencingToken token = Rows.ClaimAt(claim).Token;
        int row = Rows.ClaimAt(claim).Lock;
        if (Rows.ClaimAt(claim).Mode != form.Mode || Rows.LockAt(row).Permits != form.Permits)
        {
            return LockOutcome.ModeDiffers(token, Rows.LockAt(row).Permits);
        }

        if (_store.Keys[claim].IsHeld)
        {
            return Renew(claim, asked.LeaseMs, timeMs);
        }

        if (!asked.Waits)
        {
            return LockOutcome.Refused(Rows.TokenOfFirst(row), EndOfFirst(row, timeMs));
        }

        ClaimRow changed = new(_store.System.Open(claim));
        changed.LeaseMs = (int)asked.LeaseMs;
        changed.WaitEndMs = timeMs + asked.WaitMs;
        _store.System.Close(claim);
        _store.System.SetTime(claim, Math.Min(timeMs + asked.WaitMs, timeMs + _limits.WaiterCheckMs));
        return LockOutcome.Queued(token, timeMs);
    }

    /// <summary>A lease never ends earlier than it was promised.</summary>
    private Outcome Renew(int claim, long leaseMs, long timeMs)
    {
        long endMs = Math.Max(_store.DeadlineOf(in _store.Keys[claim]), timeMs + leaseMs);
        _store.System.SetTime(claim, endMs);
        return LockOutcome.Held(Rows.ClaimAt(claim).Token, endMs);
    }

    private bool Admits(int row, LockMode mode)
    {
        LockRow at = Rows.LockAt(row);
        return at.FirstHolder == 0
            || (mode == Rows.ClaimAt(at.FirstHolder).Mode
                && (mode == LockMode.Shared || (mode == LockMode.Permit && at.Holders < at.Permits)));
    }

    /// <summary>
    /// End of the first holder's lease; the time when nobody holds the lock yet, because those who are next are still
    /// to be granted.
    /// </summary>
    private long EndOfFirst(int row, long timeMs) =>
        Rows.LockAt(row).FirstHolder is var first and not 0 ? _store.DeadlineOf(in _store.Keys[first]) : timeMs;

    /// <summary>Takes a claim out of its lock; those who are next then have it, at most so many at once.</summary>
    private void Remove(int claim, long timeMs, int grantsMax)
    {
        int row = Rows.ClaimAt(claim).Lock;
        Rows.Note(Rows.ClaimAt(claim).Token);
        Rows.Unlink(row, claim);
        Rows.FreeClaim(claim);
        Grant(row, timeMs, grantsMax);
    }

    /// <summary>
    /// Gives the lock to those who are first in its queue, as far as they may have it together, and at most so many.
    /// Nobody gets it who has waited long enough. A lock with more to grant stands among those with grants to come
    /// afterwards, and one without claims goes. How many claims were granted or given up; 1 when none was.
    /// </summary>
    private int Grant(int row, long timeMs, int countMax)
    {
        int steps = 0;
        while (Rows.LockAt(row).FirstWaiter is var next and not 0)
        {
            ClaimRow claim = Rows.ClaimAt(next);
            bool isOver = claim.WaitEndMs <= timeMs;
            if (!isOver && !Admits(row, claim.Mode))
            {
                break;
            }

            if (steps == countMax)
            {
                GrantLater(row, timeMs);
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
                Rows.Hold(row, next, timeMs + claim.LeaseMs);
            }
        }

        _store.System.ClearTime(row);
        if (Rows.LockAt(row).FirstHolder == 0)
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
    private void GrantLater(int row, long timeMs)
    {
        if (_store.Keys[row].ExpirySlot == 0)
        {
            _store.System.SetTime(row, timeMs);
        }
    }
}
