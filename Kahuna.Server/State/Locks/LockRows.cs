using System.Buffers.Binary;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Server.State.Locks;

/// <summary>
/// The rows that locks are made of, and their lists: <c>0xFF L name</c> (<see cref="LockRow"/>) with those who hold it and those who wait (<see cref="ClaimRow"/>), each in the order of their tokens. The latest token of
/// the partition is the row <c>0xFF T</c>. Knows no rules. Owned by one <see cref="LockTable"/>; not thread-safe.
/// </summary>
internal sealed class LockRows(KeyStore store, StateLimits limits)
{
    private const byte Reserved = 0xFF;
    private const int NamePrefix = 2;
    private static readonly byte[] s_latestName = [Reserved, (byte)'T'];

    /// <summary>Claims that were granted or are gone, by token, and locks whose first holder is another, by <see cref="WatchKey"/>: noted while <see cref="IsWatched"/>, for the owner to take away.</summary>
    public List<long> Changes { get; } = [];

    /// <summary>Somebody wants to know of changes.</summary>
    public bool IsWatched { get; set; }

    /// <summary>What stands for a lock among <see cref="Changes"/>; locks may share it.</summary>
    public long WatchKey(ReadOnlySpan<byte> name) => -1L - store.Keys.HashOf(name);

    /// <summary>Row of the lock; 0 when there is none.</summary>
    public int Find(ReadOnlySpan<byte> key)
    {
        Span<byte> name = stackalloc byte[NamePrefix + Client.Wire.Limits.KeyBytesMax];
        name = NameOf(key, name);
        return store.Keys.Find(name, store.Keys.HashOf(name));
    }

    /// <summary>Row of the owner's claim; 0 when it has none.</summary>
    public int FindClaim(int row, ReadOnlySpan<byte> owner)
    {
        Span<byte> name = stackalloc byte[ClaimRow.OwnerAt + Client.Wire.Limits.OwnerBytesMax];
        name = ClaimNameOf(row, owner, name);
        return store.Keys.Find(name, store.Keys.HashOf(name));
    }

    public LockRow LockAt(int row) => new(store.Keys.Writable(in store.Keys[row]));

    public ClaimRow ClaimAt(int row) => new(store.Keys.Writable(in store.Keys[row]));

    /// <summary>The name of a row that is a lock; empty for other rows.</summary>
    public static ReadOnlySpan<byte> NameIn(ReadOnlySpan<byte> rowName) => rowName is [Reserved, (byte)'L', .. var name] ? name : default;

    public int CreateLock(ReadOnlySpan<byte> key, int permits)
    {
        Span<byte> name = stackalloc byte[NamePrefix + Client.Wire.Limits.KeyBytesMax];
        Span<byte> value = stackalloc byte[LockRow.Bytes];
        value.Clear();
        LockRow made = new(value);
        made.Permits = permits;
        return store.System.Create(NameOf(key, name), value, KeyEntryFlags.None);
    }

    public int CreateClaim(int row, scoped in LockForm form, long leaseMs, long waitEndMs)
    {
        Span<byte> name = stackalloc byte[ClaimRow.OwnerAt + Client.Wire.Limits.OwnerBytesMax];
        Span<byte> value = stackalloc byte[ClaimRow.HeaderBytes + form.Note.Length];
        value.Clear();
        ClaimRow made = new(value);
        made.Token = NextToken();
        made.Lock = row;
        made.LeaseMs = (int)leaseMs;
        made.WaitEndMs = waitEndMs;
        made.Mode = form.Mode;
        form.Note.CopyTo(made.Note);
        int claim = store.System.Create(ClaimNameOf(row, form.Owner, name), value, KeyEntryFlags.Claim);
        store.Claims.Add(made.Token, claim);
        return claim;
    }

    /// <summary>Frees a claim that is in no list.</summary>
    public void FreeClaim(int claim)
    {
        store.Claims.Remove(ClaimAt(claim).Token);
        store.System.Free(claim);
    }

    /// <summary>Adds a claim that is in no list to those that hold the lock.</summary>
    public void Hold(int row, int claim, long endMs)
    {
        LockRow at = new(store.System.Open(row));
        int last = at.LastHolder;
        at.LastHolder = claim;
        at.Holders++;
        if (last == 0)
        {
            at.FirstHolder = claim;
            NoteFirst(row);
        }

        store.System.Close(row);
        Link(claim, last, isHeld: true);
        store.System.SetTime(claim, endMs);
    }

    /// <summary>Adds a claim that is in no list to those that wait.</summary>
    public void Enqueue(int row, int claim, long timeMs)
    {
        LockRow at = new(store.System.Open(row));
        int last = at.LastWaiter;
        at.LastWaiter = claim;
        at.Waiters++;
        if (last == 0)
        {
            at.FirstWaiter = claim;
        }

        store.System.Close(row);
        Link(claim, last, isHeld: false);
        store.System.SetTime(claim, Math.Min(ClaimAt(claim).WaitEndMs, timeMs + limits.WaiterCheckMs));
    }

    private void Link(int claim, int before, bool isHeld)
    {
        ClaimRow own = new(store.System.Open(claim));
        own.Before = before;
        own.After = 0;
        store.Keys[claim].Flags = KeyEntryFlags.System | KeyEntryFlags.Claim | (isHeld ? KeyEntryFlags.Held : KeyEntryFlags.None);
        store.System.Close(claim);
        SetAfter(before, claim);
    }

    /// <summary>Takes a claim out of the list that it is in; it has no time afterwards.</summary>
    public void Unlink(int row, int claim)
    {
        (int before, int after) = (ClaimAt(claim).Before, ClaimAt(claim).After);
        store.System.ClearTime(claim);
        SetAfter(before, after);
        if (after != 0)
        {
            ClaimRow next = new(store.System.Open(after));
            next.Before = before;
            store.System.Close(after);
        }

        LockRow at = new(store.System.Open(row));
        if (store.Keys[claim].IsHeld)
        {
            at.Holders--;
            at.LastHolder = after == 0 ? before : at.LastHolder;
            if (before == 0)
            {
                at.FirstHolder = after;
                NoteFirst(row);
            }
        }
        else
        {
            at.Waiters--;
            at.LastWaiter = after == 0 ? before : at.LastWaiter;
            at.FirstWaiter = before == 0 ? after : at.FirstWaiter;
        }

        store.System.Close(row);
    }

    private void SetAfter(int claim, int after)
    {
        if (claim != 0)
        {
            ClaimRow own = new(store.System.Open(claim));
            own.After = after;
            store.System.Close(claim);
        }
    }

    public long TokenOfFirst(int row) => LockAt(row).FirstHolder is var first and not 0 ? ClaimAt(first).Token : 0;

    public void Note(long token)
    {
        if (IsWatched)
        {
            Changes.Add(token);
        }
    }

    private void NoteFirst(int row)
    {
        if (IsWatched)
        {
            Changes.Add(WatchKey(NameIn(store.Keys.Key(in store.Keys[row]))));
        }
    }

    private long NextToken()
    {
        int row = store.Keys.Find(s_latestName, store.Keys.HashOf(s_latestName));
        Span<byte> value = stackalloc byte[sizeof(long)];
        long next = row == 0 ? limits.FirstRevision : BinaryPrimitives.ReadInt64LittleEndian(store.Keys.Value(in store.Keys[row])) + 1;
        BinaryPrimitives.WriteInt64LittleEndian(value, next);
        if (row == 0)
        {
            store.System.Create(s_latestName, value, KeyEntryFlags.None);
        }
        else
        {
            store.System.Rewrite(row, value);
        }

        return next;
    }

    private static Span<byte> NameOf(ReadOnlySpan<byte> key, Span<byte> scratch)
    {
        scratch[0] = Reserved;
        scratch[1] = (byte)'L';
        key.CopyTo(scratch[NamePrefix..]);
        return scratch[..(NamePrefix + key.Length)];
    }

    private static Span<byte> ClaimNameOf(int row, ReadOnlySpan<byte> owner, Span<byte> scratch)
    {
        scratch[0] = Reserved;
        scratch[1] = (byte)'C';
        BinaryPrimitives.WriteInt32LittleEndian(scratch[NamePrefix..], row);
        owner.CopyTo(scratch[ClaimRow.OwnerAt..]);
        return scratch[..(ClaimRow.OwnerAt + owner.Length)];
    }
}
