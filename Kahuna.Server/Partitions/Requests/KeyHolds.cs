using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// The keys that pessimistic transactions hold in one group, and the requests that wait for them, in order
/// (docs/adr/0042-pessimistic-transactions.md). It lives in the leader's memory: commits are validated whatever it
/// says, and it only keeps others away meanwhile. Time is passed in. Owned by one <see cref="TransactionHolds"/>; not
/// thread-safe.
/// <para>
/// No deadlock: a transaction that holds other keys waits only while it is older than all that hold the key or wait for
/// it before. So among transactions that wait for each other, those that hold something get younger along the way.
/// </para>
/// </summary>
/// <param name="now">
/// A number that grows with the group's writes: what was taken before it may still be on its way to the state.
/// </param>
internal sealed class KeyHolds(Func<long> now)
{
    /// <summary>Places of a group: holds, and requests that wait.</summary>
    public const int PlacesMax = 65_536;

    /// <summary>Places of one transaction in a group.</summary>
    public const int PlacesPerTransactionMax = Wire.Limits.TransactionItemsMax;

    /// <summary>
    /// Transactions that hold one key, and as many that wait for it: a request is compared with all of them.
    /// </summary>
    public const int PlacesPerKeyMax = 1_024;

    /// <summary>
    /// Transactions of which it is remembered that they were released, or that their time was over: a request for a
    /// hold may arrive after that.
    /// </summary>
    public const int RememberedMax = 4_096;

    private readonly SortedSet<KeyQueue> _keys = new(KeyQueue.ByName);
    private readonly SortedDictionary<TransactionId, HoldingTransaction> _transactions = new(ById.Instance);
    private readonly SortedSet<HoldingTransaction> _byEnd = new(HoldingTransaction.ByEnd);
    private readonly LinkedList<HoldWaiter> _waiters = new();
    private readonly Queue<HoldWaiter> _granted = new();
    private readonly Queue<HoldWaiter> _ended = new();
    private readonly SortedSet<TransactionId> _over = new(ById.Instance);
    private readonly Queue<TransactionId> _overInOrder = new();
    private readonly KeyQueue _probe = KeyQueue.Probe();

    /// <summary>Keys that are held, each as often as it is.</summary>
    public int Count { get; private set; }

    /// <summary>Requests that wait, oldest first.</summary>
    public LinkedList<HoldWaiter> Waiters => _waiters;

    /// <summary>Transactions that hold a key or wait for one.</summary>
    public int Transactions => _transactions.Count;

    /// <summary>Keys that are held.</summary>
    public int Keys => _keys.Count;

    /// <summary>Somebody who waited holds the key now and is to be answered.</summary>
    public bool HasGranted => _granted.Count > 0;

    /// <summary>A transaction asks to hold a key.</summary>
    /// <param name="asked">Who asks, and how.</param>
    /// <param name="key">The key.</param>
    /// <param name="time">The time of the leader.</param>
    /// <param name="waiter">The place in the queue, when it waits.</param>
    /// <param name="since">When it holds: what had been taken before this may still change the key.</param>
    public HoldVerdict Ask(
        in HoldBody asked, ReadOnlySpan<byte> key, NodeTime time, out HoldWaiter? waiter, out long since)
    {
        waiter = null;
        since = 0;
        if (_over.Contains(asked.Id))
        {
            return HoldVerdict.Over;
        }

        KeyQueue? held = Find(key);
        bool isExclusive = asked.Mode == HoldMode.Exclusive;
        if (_transactions.TryGetValue(asked.Id, out HoldingTransaction? owner))
        {
            if (owner.Waiting is { } place)
            {
                if (place.Key == held && place.IsExclusive == isExclusive)
                {
                    waiter = place;
                    return HoldVerdict.Waits;
                }

                // It asks for one key at a time: it has given the other one up.
                Drop(place);
                held = Find(key);
                owner = _transactions.GetValueOrDefault(asked.Id);
            }

            if (owner is not null && held?.HoldOf(owner) is { } own && (own.IsExclusive || !isExclusive))
            {
                since = held.Since;
                return HoldVerdict.Granted;
            }
        }

        bool isUpgrade = owner is not null && held?.HoldOf(owner) is not null;
        if (held is null || held.IsFree(owner, isExclusive, isUpgrade))
        {
            if (!isUpgrade && IsFull(owner, held?.Holds.Count ?? 0))
            {
                return HoldVerdict.Full;
            }

            owner ??= Begin(in asked, time);
            held ??= Add(key);
            Grant(held, owner, isExclusive);
            since = held.Since;
            return HoldVerdict.Granted;
        }

        return Queue(in asked, owner, held, isUpgrade, time, out waiter);
    }

    /// <summary>Takes the next request that waited and was granted.</summary>
    public bool TryTakeGranted(out HoldWaiter waiter)
    {
        while (_granted.TryDequeue(out HoldWaiter? next))
        {
            if (next.Key.HoldOf(next.Owner) is not null)
            {
                waiter = next;
                return true;
            }

            _ended.Enqueue(next);
        }

        waiter = null!;
        return false;
    }

    /// <summary>Takes the next request that waited and will not be granted.</summary>
    public bool TryTakeEnded(out HoldWaiter waiter) => _ended.TryDequeue(out waiter!);

    /// <summary>
    /// A transaction is over: it holds nothing from now on, and what still arrives of it is refused. Returns how many
    /// keys it let go.
    /// </summary>
    /// <param name="id">The transaction.</param>
    /// <param name="isApplied">What it has written is in the state.</param>
    public int Release(TransactionId id, bool isApplied)
    {
        if (!isApplied)
        {
            Remember(id);
        }

        if (!_transactions.TryGetValue(id, out HoldingTransaction? owner))
        {
            return 0;
        }

        int keys = owner.Keys.Count;
        End(owner, isApplied);
        return keys;
    }

    /// <summary>Ends transactions whose time is over. What still arrives of them is refused.</summary>
    public void Expire(NodeTime time)
    {
        while (_byEnd.Min is { } first && first.End <= time)
        {
            Remember(first.Id);
            End(first, isApplied: false);
        }
    }

    /// <summary>Gives up a place in a queue.</summary>
    public void Drop(HoldWaiter waiter)
    {
        RemovePlace(waiter);
        if (waiter.Owner.Keys.Count == 0)
        {
            Forget(waiter.Owner);
        }
    }

    /// <summary>Forgets all. What waited is ended.</summary>
    public void Clear()
    {
        while (_waiters.First is { } place)
        {
            _waiters.RemoveFirst();
            _ended.Enqueue(place.Value);
        }

        while (_granted.TryDequeue(out HoldWaiter? granted))
        {
            _ended.Enqueue(granted);
        }

        Count = 0;
        _keys.Clear();
        _transactions.Clear();
        _byEnd.Clear();
    }

    /// <summary>Another transaction than this one holds the key.</summary>
    public bool IsHeldByOther(ReadOnlySpan<byte> key, TransactionId? own) =>
        Find(key) is { } held && held.IsOfOther(own);

    /// <summary>Some key of a range is held.</summary>
    /// <param name="start">The first key of the range; empty: of all.</param>
    /// <param name="end">The first key behind it; empty: none is.</param>
    public bool AnyHeld(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end)
    {
        _probe.SetName(start);
        KeyQueue last = KeyQueue.Probe(end);
        return _keys.Count > 0
            && KeyQueue.ByName.Compare(_probe, last) < 0
            && _keys.GetViewBetween(_probe, last).Min is { } first
            && KeyQueue.ByName.Compare(first, last) < 0;
    }

    /// <summary>Puts a request into the queue of a key, unless it has to give up.</summary>
    private HoldVerdict Queue(
        in HoldBody asked,
        HoldingTransaction? owner,
        KeyQueue held,
        bool isUpgrade,
        NodeTime time,
        out HoldWaiter? waiter)
    {
        waiter = null;
        bool holdsOthers = asked.Has(HoldFlags.HoldsOthers) || owner is { Keys.Count: > 0 };
        if (holdsOthers && !held.AreAllYounger(asked.Begun, asked.Id, isUpgrade))
        {
            return HoldVerdict.Dies;
        }

        if (IsFull(owner, held.Waiters.Count))
        {
            return HoldVerdict.Full;
        }

        waiter = new HoldWaiter(owner ?? Begin(in asked, time), held, asked.Mode == HoldMode.Exclusive);
        waiter.Owner.Waiting = waiter;
        held.Waiters.Insert(isUpgrade ? 0 : held.Waiters.Count, waiter);
        _waiters.AddLast(waiter.Place);
        return HoldVerdict.Waits;
    }

    private KeyQueue? Find(ReadOnlySpan<byte> key)
    {
        if (_keys.Count == 0)
        {
            return null;
        }

        _probe.SetName(key);
        return _keys.TryGetValue(_probe, out KeyQueue? held) ? held : null;
    }

    private KeyQueue Add(ReadOnlySpan<byte> key)
    {
        KeyQueue held = new(key.ToArray()) { Since = now() };
        _keys.Add(held);
        return held;
    }

    private HoldingTransaction Begin(in HoldBody asked, NodeTime time)
    {
        HoldingTransaction owner = new(asked.Id, asked.Begun, time + asked.LeftMs);
        _transactions.Add(asked.Id, owner);
        _byEnd.Add(owner);
        return owner;
    }

    private void Remember(TransactionId id)
    {
        if (!_over.Add(id))
        {
            return;
        }

        _overInOrder.Enqueue(id);
        if (_overInOrder.Count > RememberedMax)
        {
            _over.Remove(_overInOrder.Dequeue());
        }
    }

    private bool IsFull(HoldingTransaction? owner, int ofKey) =>
        Count + _waiters.Count >= PlacesMax
            || ofKey >= PlacesPerKeyMax
            || owner is { Keys.Count: >= PlacesPerTransactionMax };

    private void Grant(KeyQueue key, HoldingTransaction owner, bool isExclusive)
    {
        if (key.HoldOf(owner) is { } own)
        {
            own.IsExclusive |= isExclusive;
            return;
        }

        key.Holds.Add(new KeyHold(owner) { IsExclusive = isExclusive });
        owner.Keys.Add(key);
        Count++;
    }

    private void End(HoldingTransaction owner, bool isApplied)
    {
        if (owner.Waiting is { } place)
        {
            RemovePlace(place);
        }

        foreach (KeyQueue key in owner.Keys)
        {
            int index = key.Holds.FindIndex(hold => hold.Owner == owner);
            InvariantException.Require(index >= 0, "a transaction holds its keys");
            key.Holds.RemoveAt(index);
            Count--;

            // Its commit may still be on its way.
            key.Since = isApplied ? key.Since : now();
            GrantNext(key);
        }

        Forget(owner);
    }

    private void RemovePlace(HoldWaiter waiter)
    {
        _waiters.Remove(waiter.Place);
        waiter.Key.Waiters.Remove(waiter);
        waiter.Owner.Waiting = null;
        _ended.Enqueue(waiter);
        GrantNext(waiter.Key);
    }

    private void Forget(HoldingTransaction owner)
    {
        _transactions.Remove(owner.Id);
        _byEnd.Remove(owner);
    }

    /// <summary>Grants what is first in line, as far as it fits to the holders.</summary>
    private void GrantNext(KeyQueue key)
    {
        while (key.Waiters.Count > 0 && key.Fits(key.Waiters[0].Owner, key.Waiters[0].IsExclusive))
        {
            HoldWaiter next = key.Waiters[0];
            key.Waiters.RemoveAt(0);
            _waiters.Remove(next.Place);
            next.Owner.Waiting = null;
            Grant(key, next.Owner, next.IsExclusive);
            _granted.Enqueue(next);
        }

        if (key.Holds.Count == 0)
        {
            InvariantException.Require(key.Waiters.Count == 0, "nobody waits for a key that is free");
            _keys.Remove(key);
        }
    }

    /// <summary>Orders transactions by their ids. Stateless.</summary>
    private sealed class ById : IComparer<TransactionId>
    {
        public static readonly ById Instance = new();

        public int Compare(TransactionId x, TransactionId y) => x.CompareTo(y);
    }
}

/// <summary>What becomes of a request for a hold. Not stored.</summary>
internal enum HoldVerdict
{
    /// <summary>The transaction holds the key.</summary>
    Granted,

    /// <summary>It waits in the key's queue.</summary>
    Waits,

    /// <summary>It might wait for one that waits for it: an older transaction is there, so it has to give up.</summary>
    Dies,

    /// <summary>The transaction was released before, or its time is over.</summary>
    Over,

    /// <summary>There are no more places.</summary>
    Full,
}
