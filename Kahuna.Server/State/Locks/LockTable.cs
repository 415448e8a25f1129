using System.Buffers.Binary;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The locks of one partition: claims that hold a lock and claims that wait for it, first come first served. A claim's number is its fencing token: claims of one lock are granted in the order of their numbers,
/// which grow over everything that happens to the partition. A lock that nobody holds or waits for leaves nothing behind. No lease ends but by a command, and whoever is next has the lock with the same
/// command. Where a command lets in more than <see cref="GrantsPerCommand"/> claims, the others follow with the next commands, in their order: no command does unbounded work. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class LockTable
{
    /// <summary>Claims that one command of a client grants, or gives up because their wait is over: each costs about as much as two sets.</summary>
    public const int GrantsPerCommand = 8;

    /// <summary>Leases that one sweep ends, claims that it decides about, and claims that it grants: bounded work per command.</summary>
    public const int StepsPerSweep = 16;

    private static readonly byte[] s_leasesBeforeName = [0xFF, (byte)'E'];

    private readonly KeyStore _store;
    private readonly StateLimits _limits;
    private long _leasesBeforeMs;
    private long _expired;

    public LockTable(KeyStore store, StateLimits limits)
    {
        _store = store;
        _limits = limits;
        Rows = new LockRows(store, limits);
        int row = store.Keys.Find(s_leasesBeforeName, store.Keys.HashOf(s_leasesBeforeName));
        _leasesBeforeMs = row == 0 ? 0 : BinaryPrimitives.ReadInt64LittleEndian(store.Keys.Value(in store.Keys[row]));
    }

    /// <summary>The state begins empty after another one was lost, whose leases may go on until this cluster time. It is part of the state: the row <c>0xFF E</c>.</summary>
    public void BeginAfter(long leasesBeforeMs)
    {
        Span<byte> value = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(value, leasesBeforeMs);
        _store.System.Create(s_leasesBeforeName, value, KeyEntryFlags.None);
        _leasesBeforeMs = leasesBeforeMs;
    }

    /// <summary>What everything lies in, and what has changed there.</summary>
    public LockRows Rows { get; }

    public LockFigures Figures => new(_store.Leases.Count, _store.Waiters.Count, _expired);

    /// <summary>True when some lease has ended at a time, or claims are still to be granted: the leader then proposes a sweep.</summary>
    public bool HasWork(long nowMs) => HasGrants || _store.Leases.AnyPassed(nowMs);

    /// <summary>Claims are still to be granted.</summary>
    public bool HasGrants => _store.Grants.Count > 0;

    /// <summary>Steps that sweeps have to do at a time, as far as it can be told, and at most <paramref name="countMax"/>: leases to end, and claims of the first lock that are to be granted.</summary>
    public int StepsDue(long nowMs, int countMax, List<int> scratch)
    {
        scratch.Clear();
        _store.Leases.CollectPassed(nowMs, countMax, scratch);
        return Math.Min(countMax, scratch.Count + (HasGrants ? Rows.LockAt(_store.Grants.First).Waiters : 0));
    }

    /// <summary>The claims that are to be looked after, in no order.</summary>
    public void CollectDueWaiters(long nowMs, int countMax, List<int> rows) => _store.Waiters.CollectPassed(nowMs, countMax, rows);

    /// <summary>A claim that waits, by its row.</summary>
    public (long Token, long WaitEndMs) Waiter(int row) => (Rows.ClaimAt(row).Token, Rows.ClaimAt(row).WaitEndMs);

    /// <summary>Carries out a command about a lock, and refuses one whose token is not current; others are left to whom they concern.</summary>
    public bool TryApply(scoped in Command command, long timeMs, out Outcome answer)
    {
        if (LockCheck.IsLock(command.Kind))
        {
            answer = Apply(in command, timeMs);
            return true;
        }

        bool isRefused = command.Has(CommandFlags.Fenced) && !IsCurrent(command.FenceName, command.FenceToken);
        answer = isRefused ? new Outcome(OutcomeStatus.FenceFailed, CurrentToken(command.FenceName)) : default;
        return isRefused;
    }

    private Outcome Apply(scoped in Command command, long timeMs)
    {
        int row = Rows.Find(command.Key);
        if (command.Kind == CommandKind.LockAcquire)
        {
            LockForm.TryRead(command.Value, out LockForm form);
            int own = row == 0 ? 0 : Rows.FindClaim(row, form.Owner);
            return own == 0 ? Acquire(row, in command, in form, timeMs) : AcquireAgain(own, in command, in form, timeMs);
        }

        int claim = row == 0 ? 0 : Rows.FindClaim(row, command.Value);
        if (claim == 0 || Rows.ClaimAt(claim).Token != command.ComparedRevision)
        {
            return new Outcome(OutcomeStatus.ConditionFailed, row == 0 ? 0 : Rows.TokenOfFirst(row));
        }

        if (command.Kind == CommandKind.LockRelease)
        {
            if (command.Has(CommandFlags.IfAbsent) && _store.Keys[claim].IsHeld)
            {
                return new Outcome(OutcomeStatus.ConditionFailed, Rows.TokenOfFirst(row));
            }

            Remove(claim, timeMs, GrantsPerCommand);
            return new Outcome(OutcomeStatus.Applied, command.ComparedRevision);
        }

        return _store.Keys[claim].IsHeld ? Renew(claim, command.TtlMs, timeMs) : new Outcome(OutcomeStatus.ConditionFailed, Rows.TokenOfFirst(row));
    }

    /// <summary>
    /// Grants what is still to be granted, ends leases that have passed, the earliest first, at most so many of both together, and does what was decided about those who wait. Each end and each decision grants at
    /// most one claim; where more have come to their turn, they are left to the next sweep.
    /// </summary>
    public void Sweep(long timeMs, long countMax, ReadOnlySpan<byte> decisions)
    {
        long steps = 0;
        while (steps < countMax && HasGrants)
        {
            steps += Grant(_store.Grants.First, timeMs, (int)(countMax - steps));
        }

        for (; steps < countMax && _store.Leases.AnyPassed(timeMs); steps++)
        {
            Remove(_store.Leases.First, timeMs, 1);
            _expired++;
        }

        for (; decisions.Length >= WaiterDecision.Bytes; decisions = decisions[WaiterDecision.Bytes..])
        {
            WaiterDecision decision = WaiterDecision.Read(decisions);
            if (decision.Row < 1 || decision.Row > _store.Keys.Count || !_store.Keys[decision.Row].IsClaim || _store.Keys[decision.Row].IsHeld || Rows.ClaimAt(decision.Row).Token != decision.Token
                || !_store.Waiters.HasPassed(in _store.Keys[decision.Row], timeMs))
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
                _store.System.SetTime(decision.Row, Math.Min(Rows.ClaimAt(decision.Row).WaitEndMs, timeMs + decision.AgainMs));
            }
        }
    }

    /// <summary>True while the token's holder has the lock.</summary>
    public bool IsCurrent(ReadOnlySpan<byte> name, long token)
    {
        int claim = _store.Claims.Find(token);
        return claim != 0 && _store.Keys[claim].IsHeld && Rows.Find(name) == Rows.ClaimAt(claim).Lock;
    }

    /// <summary>The lowest token that has the lock; 0 when nobody does.</summary>
    public long CurrentToken(ReadOnlySpan<byte> name) => Rows.Find(name) is var row and not 0 ? Rows.TokenOfFirst(row) : 0;

    private Outcome Acquire(int row, scoped in Command command, scoped in LockForm form, long timeMs)
    {
        bool waits = command.Has(CommandFlags.Number);
        if (row != 0 && Rows.LockAt(row).Permits != form.Permits)
        {
            return new Outcome(OutcomeStatus.ModeDiffers, Rows.TokenOfFirst(row), Rows.LockAt(row).Permits);
        }

        if (row != 0 && Rows.LockAt(row).Holders + Rows.LockAt(row).Waiters >= _limits.ClaimsPerLockMax)
        {
            return new Outcome(OutcomeStatus.LockFull);
        }

        bool isFree = row == 0 ? timeMs >= _leasesBeforeMs : Rows.LockAt(row).Waiters == 0 && Admits(row, form.Mode);
        if (!isFree && !waits)
        {
            return row == 0
                ? new Outcome(OutcomeStatus.ConditionFailed, 0, _leasesBeforeMs)
                : new Outcome(OutcomeStatus.ConditionFailed, Rows.TokenOfFirst(row), EndOfFirst(row, timeMs));
        }

        if (row == 0)
        {
            row = Rows.CreateLock(command.Key, form.Permits);
            if (!isFree)
            {
                // Somebody may have had it in the epoch before.
                Rows.Hold(row, Rows.CreateClaim(row, new LockForm { Mode = LockMode.Exclusive }, 0, 0), _leasesBeforeMs);
            }
        }

        int claim = Rows.CreateClaim(row, in form, command.TtlMs, timeMs + command.Number);
        long token = Rows.ClaimAt(claim).Token;
        if (isFree)
        {
            Rows.Hold(row, claim, timeMs + command.TtlMs);
            return new Outcome(OutcomeStatus.Applied, token, timeMs + command.TtlMs);
        }

        Rows.Enqueue(row, claim, timeMs);
        return new Outcome(OutcomeStatus.Queued, token, timeMs);
    }

    /// <summary>The owner has a claim: a lease is renewed, a wait begins anew at its place in the queue.</summary>
    private Outcome AcquireAgain(int claim, scoped in Command command, scoped in LockForm form, long timeMs)
    {
        long token = Rows.ClaimAt(claim).Token;
        int row = Rows.ClaimAt(claim).Lock;
        if (Rows.ClaimAt(claim).Mode != form.Mode || Rows.LockAt(row).Permits != form.Permits)
        {
            return new Outcome(OutcomeStatus.ModeDiffers, token, Rows.LockAt(row).Permits);
        }

        if (_store.Keys[claim].IsHeld)
        {
            return Renew(claim, command.TtlMs, timeMs);
        }

        if (!command.Has(CommandFlags.Number))
        {
            return new Outcome(OutcomeStatus.ConditionFailed, Rows.TokenOfFirst(row), EndOfFirst(row, timeMs));
        }

        ClaimRow changed = new(_store.System.Open(claim));
        changed.LeaseMs = (int)command.TtlMs;
        changed.WaitEndMs = timeMs + command.Number;
        _store.System.Close(claim);
        _store.System.SetTime(claim, Math.Min(timeMs + command.Number, timeMs + _limits.WaiterCheckMs));
        return new Outcome(OutcomeStatus.Queued, token, timeMs);
    }

    /// <summary>A lease never ends earlier than it was promised.</summary>
    private Outcome Renew(int claim, long leaseMs, long timeMs)
    {
        long endMs = Math.Max(_store.DeadlineOf(in _store.Keys[claim]), timeMs + leaseMs);
        _store.System.SetTime(claim, endMs);
        return new Outcome(OutcomeStatus.Applied, Rows.ClaimAt(claim).Token, endMs);
    }

    private bool Admits(int row, LockMode mode)
    {
        LockRow at = Rows.LockAt(row);
        return at.FirstHolder == 0 || (mode == Rows.ClaimAt(at.FirstHolder).Mode && (mode == LockMode.Shared || (mode == LockMode.Permit && at.Holders < at.Permits)));
    }

    /// <summary>End of the first holder's lease; the time when nobody holds the lock yet, because those who are next are still to be granted.</summary>
    private long EndOfFirst(int row, long timeMs) => Rows.LockAt(row).FirstHolder is var first and not 0 ? _store.DeadlineOf(in _store.Keys[first]) : timeMs;

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
    /// Gives the lock to those who are first in its queue, as far as they may have it together, and at most so many. Nobody gets it who has waited long enough. A lock with more to grant stands among those with grants
    /// to come afterwards, and one without claims goes. How many claims were granted or given up; 1 when none was.
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
            _store.System.Free(row);
        }

        return Math.Max(1, steps);
    }

    /// <summary>The lock has claims that are still to be granted: a sweep goes on with them, the locks that came first first.</summary>
    private void GrantLater(int row, long timeMs)
    {
        if (_store.Keys[row].ExpirySlot == 0)
        {
            _store.System.SetTime(row, timeMs);
        }
    }
}
