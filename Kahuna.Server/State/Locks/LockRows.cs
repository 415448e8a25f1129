using System.Buffers.Binary;
using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The rows that locks are made of, and their lists: <c>0xFF L name</c> (<see cref="LockRow"/>) with those who hold it
/// and those who wait (<see cref="ClaimRow"/>), each in the order of their tokens. The latest token of the partition is
/// the row <c>0xFF T</c>. Knows no rules. Owned by one <see cref="LockTable"/>; not thread-safe.
/// </summary>
[SkipLocalsInit]
internal sealed class LockRows
{
    private static readonly byte[] s_latestName = SystemRowKind.LatestToken.ToName();
    private static readonly byte[] s_leasesBeforeName = SystemRowKind.LeasesBefore.ToName();

    private readonly KeyStore _store;
    private readonly StateLimits _limits;

    /// <summary>The row of the latest token, which is never freed; none before the first claim.</summary>
    private Row _latest;

    public LockRows(KeyStore store, StateLimits limits)
    {
        _store = store;
        _limits = limits;
        Claims = new ClaimIndex(limits.HashSecret);
        _latest = store.System.Find(s_latestName);
        Row before = store.System.Find(s_leasesBeforeName);
        LeasesBefore = before.IsNone
            ? default
            : new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(store.Keys.Value(in store.Keys[before])));
        for (Row row = Row.First; row.Value <= store.Keys.Count; row = row.Next)
        {
            if (store.Keys[row].IsClaim)
            {
                Claims.Add(ClaimAt(row).Token, row);
            }
        }
    }

    /// <summary>
    /// Until when leases of a state that was lost may go on; 0: there was none. The row <c>0xFF E</c>.
    /// </summary>
    public ClusterTime LeasesBefore { get; private set; }

    /// <summary>All claims by token.</summary>
    public ClaimIndex Claims { get; }

    /// <summary>
    /// Claims that were granted or are gone, by token, and locks whose first holder is another, by
    /// <see cref="WatchKey"/>: noted while <see cref="IsWatched"/>, for the owner to take away.
    /// </summary>
    public List<long> Changes { get; } = [];

    /// <summary>Somebody wants to know of changes.</summary>
    public bool IsWatched { get; set; }

    public void SetLeasesBefore(ClusterTime leasesBefore)
    {
        Span<byte> value = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(value, leasesBefore.Ms);
        _store.System.Create(SystemRowKind.LeasesBefore, s_leasesBeforeName, value);
        LeasesBefore = leasesBefore;
    }

    /// <summary>What stands for a lock among <see cref="Changes"/>; locks may share it.</summary>
    public long WatchKey(ReadOnlySpan<byte> name) => -1L - _store.Keys.HashOf(name);

    /// <summary>Row of the lock; 0 when there is none.</summary>
    public Row Find(ReadOnlySpan<byte> key)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.PrefixBytes + Wire.Limits.KeyBytesMax];
        name = NameOf(key, name);
        return _store.System.Find(name);
    }

    /// <summary>Row of the owner's claim; 0 when it has none.</summary>
    public Row FindClaim(Row row, ReadOnlySpan<byte> owner)
    {
        Span<byte> name = stackalloc byte[ClaimRow.OwnerAt + Wire.Limits.OwnerBytesMax];
        name = ClaimNameOf(row, owner, name);
        return _store.System.Find(name);
    }

    public LockRow LockAt(Row row) => new(_store.Keys.Writable(in _store.Keys[row]));

    public ClaimRow ClaimAt(Row row) => new(_store.Keys.Writable(in _store.Keys[row]));

    /// <summary>The name of a row that is a lock; empty for other rows.</summary>
    public static ReadOnlySpan<byte> NameIn(ReadOnlySpan<byte> rowName) =>
        SystemRowKind.Of(rowName) == SystemRowKind.Lock ? rowName[SystemRowKind.PrefixBytes..] : default;

    public Row CreateLock(ReadOnlySpan<byte> key, int permits)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.PrefixBytes + Wire.Limits.KeyBytesMax];
        Span<byte> value = stackalloc byte[LockRow.Bytes];
        value.Clear();
        LockRow made = new(value);
        made.Permits = permits;
        return _store.System.Create(SystemRowKind.Lock, NameOf(key, name), value);
    }

    public Row CreateClaim(Row row, scoped in LockBody form, long leaseMs, ClusterTime waitEnd)
    {
        Span<byte> name = stackalloc byte[ClaimRow.OwnerAt + Wire.Limits.OwnerBytesMax];
        Span<byte> value = stackalloc byte[ClaimRow.HeaderBytes + form.Note.Length];
        value.Clear();
        ClaimRow made = new(value);
        made.Token = NextToken();
        made.Lock = row;
        made.LeaseMs = (int)leaseMs;
        made.WaitEnd = waitEnd;
        made.Mode = form.Mode;
        form.Note.CopyTo(made.Note);
        Row claim = _store.System.Create(SystemRowKind.Claim, ClaimNameOf(row, form.Owner, name), value);
        Claims.Add(made.Token, claim);
        return claim;
    }

    /// <summary>Frees a claim that is in no list.</summary>
    public void FreeClaim(Row claim)
    {
        InvariantException.Require(
            _store.Keys[claim] is { IsClaim: true, ExpirySlot: 0 }, "a claim ends after it has left its list");
        Claims.Remove(ClaimAt(claim).Token);
        _store.System.Free(claim);
    }

    /// <summary>Adds a claim that is in no list to those that hold the lock.</summary>
    public void Hold(Row row, Row claim, ClusterTime end)
    {
        LockRow at = new(_store.System.Open(row));
        Row last = at.LastHolder;
        at.LastHolder = claim;
        at.Holders++;
        if (last.IsNone)
        {
            at.FirstHolder = claim;
            NoteFirst(row);
        }

        _store.System.Close(row);
        Link(claim, last, isHeld: true);
        _store.System.SetTime(claim, end);
    }

    /// <summary>Adds a claim that is in no list to those that wait.</summary>
    public void Enqueue(Row row, Row claim, ClusterTime time)
    {
        LockRow at = new(_store.System.Open(row));
        Row last = at.LastWaiter;
        at.LastWaiter = claim;
        at.Waiters++;
        if (last.IsNone)
        {
            at.FirstWaiter = claim;
        }

        _store.System.Close(row);
        Link(claim, last, isHeld: false);
        _store.System.SetTime(claim, ClusterTime.Min(ClaimAt(claim).WaitEnd, time + _limits.WaiterCheckMs));
    }

    private void Link(Row claim, Row before, bool isHeld)
    {
        InvariantException.Require(
            before.IsNone || ClaimAt(before).Token < ClaimAt(claim).Token, "a list has the order of its tokens");
        InvariantException.Require(
            before.IsNone || ClaimAt(before).After.IsNone, "a claim is added at the end of its list");
        ClaimRow own = new(_store.System.Open(claim));
        own.Before = before;
        own.After = Row.None;
        _store.Keys[claim].Flags = SystemRowKind.Claim.Flags | (isHeld ? KeyEntryFlags.Held : KeyEntryFlags.None);
        _store.System.Close(claim);
        SetAfter(before, claim);
    }

    /// <summary>Takes a claim out of the list that it is in; it has no time afterwards.</summary>
    public void Unlink(Row row, Row claim)
    {
        (Row before, Row after) = (ClaimAt(claim).Before, ClaimAt(claim).After);
        InvariantException.Require(before.IsNone || ClaimAt(before).After == claim, "the claim before names this one");
        InvariantException.Require(after.IsNone || ClaimAt(after).Before == claim, "the claim after names this one");
        InvariantException.Require(ClaimAt(claim).Lock == row, "a claim is in a list of its own lock");
        _store.System.ClearTime(claim);
        SetAfter(before, after);
        if (!after.IsNone)
        {
            ClaimRow next = new(_store.System.Open(after));
            next.Before = before;
            _store.System.Close(after);
        }

        LockRow at = new(_store.System.Open(row));
        if (_store.Keys[claim].IsHeld)
        {
            at.Holders--;
            InvariantException.Require(
                at.Holders >= 0 && (!before.IsNone || at.FirstHolder == claim), "holders are counted");
            at.LastHolder = after.IsNone ? before : at.LastHolder;
            if (before.IsNone)
            {
                at.FirstHolder = after;
                NoteFirst(row);
            }
        }
        else
        {
            at.Waiters--;
            InvariantException.Require(
                at.Waiters >= 0 && (!before.IsNone || at.FirstWaiter == claim), "claims that wait are counted");
            at.LastWaiter = after.IsNone ? before : at.LastWaiter;
            at.FirstWaiter = before.IsNone ? after : at.FirstWaiter;
        }

        _store.System.Close(row);
    }

    private void SetAfter(Row claim, Row after)
    {
        if (!claim.IsNone)
        {
            ClaimRow own = new(_store.System.Open(claim));
            own.After = after;
            _store.System.Close(claim);
        }
    }

    public FencingToken TokenOfFirst(Row row) =>
        LockAt(row).FirstHolder is { IsNone: false } first ? ClaimAt(first).Token : FencingToken.None;

    /// <summary>The queue of a lock (<see cref="LockQueue.Read"/>).</summary>
    public LockQueue QueueOf(ReadOnlySpan<byte> name, int countMax, ClusterTime now) =>
        LockQueue.Read(this, _store, name, countMax, now);

    public void Note(FencingToken token)
    {
        if (IsWatched)
        {
            Changes.Add(token.Value);
        }
    }

    private void NoteFirst(Row row)
    {
        if (IsWatched)
        {
            Changes.Add(WatchKey(NameIn(_store.Keys.Key(in _store.Keys[row]))));
        }
    }

    private FencingToken NextToken()
    {
        Span<byte> value = stackalloc byte[sizeof(long)];
        long next = _latest.IsNone
            ? _limits.FirstRevision.Value
            : BinaryPrimitives.ReadInt64LittleEndian(_store.Keys.Value(in _store.Keys[_latest])) + 1;
        BinaryPrimitives.WriteInt64LittleEndian(value, next);
        if (_latest.IsNone)
        {
            _latest = _store.System.Create(SystemRowKind.LatestToken, s_latestName, value);
        }
        else
        {
            _store.System.Rewrite(_latest, value);
        }

        return new FencingToken(next);
    }

    private static Span<byte> NameOf(ReadOnlySpan<byte> key, Span<byte> scratch)
    {
        SystemRowKind.Lock.WritePrefix(scratch);
        key.CopyTo(scratch[SystemRowKind.PrefixBytes..]);
        return scratch[..(SystemRowKind.PrefixBytes + key.Length)];
    }

    private static Span<byte> ClaimNameOf(Row row, ReadOnlySpan<byte> owner, Span<byte> scratch)
    {
        SystemRowKind.Claim.WritePrefix(scratch);
        BinaryPrimitives.WriteInt32LittleEndian(scratch[SystemRowKind.PrefixBytes..], row.Value);
        owner.CopyTo(scratch[ClaimRow.OwnerAt..]);
        return scratch[..(ClaimRow.OwnerAt + owner.Length)];
    }
}
