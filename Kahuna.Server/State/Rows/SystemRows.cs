using System.Buffers.Binary;
using System.Numerics;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Rows that are no keys: what the state remembers of clients, sequences and itself, under names that begin with a byte
/// that no key does. They are stored, sent and digested like keys, are changed in place, and are freed when they end.
/// Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class SystemRows(KeyStore store)
{
    private readonly RowSet?[] _lists = NewLists();

    /// <summary>How many there are.</summary>
    public int Rows { get; private set; }

    /// <summary>The rows of a kind that is listed.</summary>
    public RowSet Of(SystemRowKind kind)
    {
        RowSet? list = _lists[kind.Letter];
        InvariantException.Require(list is not null, "only kinds that are listed have a list");
        return list;
    }

    /// <summary>Row of a name; 0 when there is none.</summary>
    public Row Find(ReadOnlySpan<byte> name) => store.Keys.Find(name, store.Keys.HashOf(name));

    /// <summary>Adds a row.</summary>
    public Row Create(SystemRowKind kind, ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        InvariantException.Require(SystemRowKind.Of(name) == kind, "a row of the system has a name of its kind");
        Row row = store.Create(name, store.Keys.HashOf(name), value, kind.Flags);
        Added(row, name);
        return row;
    }

    /// <summary>A row is there by now: created, or loaded.</summary>
    public void Added(Row row, ReadOnlySpan<byte> name)
    {
        Rows++;
        _lists[name[1]]?.Add(row);
    }

    /// <summary>Frees a row.</summary>
    public void Free(Row row)
    {
        store.BeginChange(row);
        ClearTime(row);
        store.AddToDigest(unchecked(0 - store.Keys[row].Digest));
        Rows--;
        InvariantException.Require(
            Rows >= 0 && (store.Keys[row].Flags & KeyEntryFlags.System) != 0, "only rows of the system are freed");
        _lists[store.Keys.Key(in store.Keys[row])[1]]?.Remove(row);
        store.Keys.Free(row);
    }

    /// <summary>Gives a row another value of the same length.</summary>
    public void Rewrite(Row row, ReadOnlySpan<byte> value)
    {
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        InvariantException.Require(value.Length == entry.ValueLength, "a row is rewritten in its length");
        store.AddToDigest(unchecked(0 - entry.Digest));
        value.CopyTo(store.Keys.Writable(in entry));
        store.AddDigest(ref entry);
    }

    /// <summary>A row's value, to be changed in place; afterwards <see cref="EndChange"/>.</summary>
    public Span<byte> BeginChange(Row row)
    {
        store.BeginChange(row);
        return store.Keys.Writable(in store.Keys[row]);
    }

    /// <summary>What the change made of the row's digest: so much more than before.</summary>
    public void EndChange(Row row, ulong difference)
    {
        store.Keys[row].Digest = unchecked(store.Keys[row].Digest + difference);
        store.AddToDigest(difference);
    }

    /// <summary>A row's value, to be changed in place in any way; afterwards <see cref="Close"/>.</summary>
    public Span<byte> Open(Row row)
    {
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        store.AddToDigest(unchecked(0 - entry.Digest));
        return store.Keys.Writable(in entry);
    }

    /// <summary>The change is made.</summary>
    public void Close(Row row) => store.AddDigest(ref store.Keys[row]);

    /// <summary>Gives a row a time among those of its kind, or another one.</summary>
    public void SetTime(Row row, ClusterTime time)
    {
        ClearTime(row);
        store.BeginChange(row);
        ref KeyEntry entry = ref store.Keys[row];
        store.HeapOf(in entry).Set(row, time);
        store.AddToDigest(StateDigest.OfDeadline(row, time));
    }

    /// <summary>Takes a row's time away, if it has one.</summary>
    public void ClearTime(Row row)
    {
        ref KeyEntry entry = ref store.Keys[row];
        if (entry.ExpirySlot != 0)
        {
            store.BeginChange(row);
            store.AddToDigest(unchecked(0 - StateDigest.OfDeadline(row, store.DeadlineOf(in entry))));
            store.HeapOf(in entry).Remove(row);
        }
    }

    /// <summary>
    /// Puts a session at its time among those that remember outcomes or those that do not, whichever its value says. It
    /// is in <paramref name="from"/> until then; null: in none.
    /// </summary>
    public void PlaceSession(Row row, ExpiryHeap? from, ClusterTime time)
    {
        ref KeyEntry entry = ref store.Keys[row];
        InvariantException.Require(
            entry.IsSession && (from is not null) == (entry.ExpirySlot != 0), "a session stands in one heap");
        ExpiryHeap to = store.HeapOf(in entry);
        if (from is not null)
        {
            store.AddToDigest(unchecked(0 - StateDigest.OfDeadline(row, from.DeadlineOf(in entry))));
            if (from != to)
            {
                from.Remove(row);
            }
        }

        to.Set(row, time);
        store.AddToDigest(StateDigest.OfDeadline(row, time));
    }

    private static RowSet?[] NewLists()
    {
        RowSet?[] lists = new RowSet?[byte.MaxValue + 1];
        foreach (SystemRowKind kind in SystemRowKind.All)
        {
            lists[kind.Letter] = kind.IsListed ? new RowSet() : null;
        }

        return lists;
    }
}

/// <summary>
/// The register of the rows that are no keys: their names begin with 0xFF, which no key does, and a letter. A new kind
/// of row needs its entry here, and what it holds in docs/state-format.md. Immutable, any thread.
/// </summary>
internal sealed class SystemRowKind
{
    /// <summary>The first byte of the names.</summary>
    public const byte Reserved = 0xFF;

    /// <summary>Bytes of a name before what tells rows of one kind apart.</summary>
    public const int PrefixBytes = 2;

    /// <summary>Length of the name of a session's row.</summary>
    public const int SessionNameBytes = PrefixBytes + sizeof(ulong);

    /// <summary>Bytes of a session's value before the first outcome, and of one that remembers no outcome.</summary>
    public const int SessionHeaderBytes = 24;

    /// <summary>Bytes of one outcome in a session's value.</summary>
    public const int SessionPlaceBytes = 24;

    /// <summary>Bytes of a claim's value before its note.</summary>
    public const int ClaimHeaderBytes = 34;

    /// <summary>Where the owner begins in the name of a claim.</summary>
    public const int ClaimOwnerAt = PrefixBytes + sizeof(int);

    /// <summary>A client session, or an idempotency key: <c>0xFF S, u64 session</c>.</summary>
    public static readonly SystemRowKind Session = new('S', "session", CommandTable.Sessions, KeyEntryFlags.Session)
    {
        Heaps = [RowHeap.LiveSessions, RowHeap.IdleSessions, RowHeap.IdempotencyKeys],
    };

    /// <summary>A value that a remembered outcome carries: <c>0xFF V, u64 session, u64 number</c>.</summary>
    public static readonly SystemRowKind KeptValue = new('V', "value of an outcome", CommandTable.Sessions);

    /// <summary>A sequence: <c>0xFF Q, name</c>.</summary>
    public static readonly SystemRowKind Sequence = new('Q', "sequence", CommandTable.Sequences) { IsListed = true };

    /// <summary>The latest incarnation of any sequence: <c>0xFF I</c>.</summary>
    public static readonly SystemRowKind LatestIncarnation = new('I', "latest incarnation", CommandTable.Sequences);

    /// <summary>A lock: <c>0xFF L, name</c>.</summary>
    public static readonly SystemRowKind Lock = new('L', "lock", CommandTable.Locks)
    {
        IsListed = true,
        Heaps = [RowHeap.Grants],
    };

    /// <summary>A claim for a lock: <c>0xFF C, u32 row of the lock, owner</c>.</summary>
    public static readonly SystemRowKind Claim = new('C', "claim", CommandTable.Locks, KeyEntryFlags.Claim)
    {
        Heaps = [RowHeap.Leases, RowHeap.Waiters],
    };

    /// <summary>The latest fencing token: <c>0xFF T</c>.</summary>
    public static readonly SystemRowKind LatestToken = new('T', "latest token", CommandTable.Locks);

    /// <summary>Until when leases of the epoch before may go on: <c>0xFF E</c>.</summary>
    public static readonly SystemRowKind LeasesBefore = new('E', "leases of the epoch before", CommandTable.Locks);

    /// <summary>The first revision of a key that has no row: <c>0xFF F</c>.</summary>
    public static readonly SystemRowKind FirstRevision = new('F', "first revision", CommandTable.KeyValues);

    /// <summary>
    /// The prepared part of a transaction over several partitions: <c>0xFF O, u8[16] id</c>
    /// (<see cref="PreparedPart"/>).
    /// </summary>
    public static readonly SystemRowKind PreparedPart = new('O', "prepared part", CommandTable.KeyValues)
    {
        IsListed = true,
        Heaps = [RowHeap.PreparedParts],
    };

    /// <summary>
    /// The decision about a transaction over several partitions: <c>0xFF D, u8[16] id</c> (<see cref="DecisionRow"/>).
    /// </summary>
    public static readonly SystemRowKind Decision = new('D', "decision", CommandTable.KeyValues)
    {
        IsListed = true,
        Heaps = [RowHeap.Decisions],
    };

    /// <summary>The slots that the group has given away: <c>0xFF P</c>.</summary>
    public static readonly SystemRowKind ReleasedSlots = new('P', "released slots", CommandTable.Slots);

    /// <summary>
    /// Meta group: the cluster's configuration, <c>0xFF c</c>. Without the flag of the system's rows.
    /// </summary>
    public static readonly SystemRowKind Configuration = new('c', "configuration", CommandTable.Meta)
    {
        IsFlagged = false,
    };

    /// <summary>Meta group: a node's newest start, <c>0xFF n, u16 node</c>. Without the flag.</summary>
    public static readonly SystemRowKind Node = new('n', "node", CommandTable.Meta) { IsFlagged = false };

    /// <summary>Meta group: an ephemeral group's epoch, <c>0xFF g, u32 group</c>. Without the flag.</summary>
    public static readonly SystemRowKind Group = new('g', "ephemeral group", CommandTable.Meta) { IsFlagged = false };

    /// <summary>Meta group: the cluster's feature level, <c>0xFF f</c>. Without the flag.</summary>
    public static readonly SystemRowKind FeatureLevel = new('f', "feature level", CommandTable.Meta)
    {
        IsFlagged = false,
    };

    /// <summary>Meta group: which partition owns which slots, <c>0xFF s</c>. Without the flag.</summary>
    public static readonly SystemRowKind SlotMap = new('s', "slot map", CommandTable.Meta) { IsFlagged = false };

    /// <summary>
    /// Meta group: the slot map with which an ephemeral group's epoch began, <c>0xFF r, u32 group</c>. Without the
    /// flag.
    /// </summary>
    public static readonly SystemRowKind SlotMapOfEpoch = new('r', "slot map of an epoch", CommandTable.Meta)
    {
        IsFlagged = false,
    };

    /// <summary>
    /// Meta group: a record about who may do what, <c>0xFF a, u8 kind, name</c> (<c>Meta/AccessTable</c>).
    /// </summary>
    public static readonly SystemRowKind Access = new('a', "access record", CommandTable.Meta) { IsListed = true };

    /// <summary>Meta group: the version of these records, and the newest changes, <c>0xFF v</c>.</summary>
    public static readonly SystemRowKind AccessVersion = new('v', "version of access", CommandTable.Meta);

    /// <summary>Tests of feature levels: how many commands were applied, <c>0xFF X</c>.</summary>
    public static readonly SystemRowKind FeatureProbe = new('X', "feature probe", CommandTable.Probe);

    private static readonly SystemRowKind[] s_all =
    [
        Session, KeptValue, Sequence, LatestIncarnation, Lock, Claim, LatestToken, LeasesBefore, FirstRevision,
        PreparedPart, Decision, ReleasedSlots, Configuration, Node, Group, SlotMap, SlotMapOfEpoch,
        FeatureLevel, Access, AccessVersion, FeatureProbe,
    ];

    private static readonly SystemRowKind?[] s_byLetter = ByLetter();

    private readonly KeyEntryFlags _kindFlag;

    private SystemRowKind(char letter, string title, CommandTable owner, KeyEntryFlags kindFlag = KeyEntryFlags.None)
    {
        Letter = (byte)letter;
        Title = title;
        Owner = owner;
        _kindFlag = kindFlag;
    }

    /// <summary>Every kind.</summary>
    public static ReadOnlySpan<SystemRowKind> All => s_all;

    /// <summary>The second byte of the names.</summary>
    public byte Letter { get; }

    /// <summary>What such a row is, in a word or two.</summary>
    public string Title { get; }

    /// <summary>The table that writes such rows.</summary>
    public CommandTable Owner { get; }

    /// <summary>The rows are listed, so that a page of them meets nothing else.</summary>
    public bool IsListed { get; private init; }

    /// <summary>The orders of time in which such a row may stand; none for a row without a time.</summary>
    public RowHeap[] Heaps { get; private init; } = [];

    /// <summary>The flags of such a row, apart from <see cref="KeyEntryFlags.Held"/>.</summary>
    public KeyEntryFlags Flags => IsFlagged ? KeyEntryFlags.System | _kindFlag : KeyEntryFlags.None;

    private bool IsFlagged { get; init; } = true;

    /// <summary>
    /// The kind of a row by its name; null for a key, and for a kind that this version does not know.
    /// </summary>
    public static SystemRowKind? Of(ReadOnlySpan<byte> name) =>
        name.Length >= PrefixBytes && name[0] == Reserved ? s_byLetter[name[1]] : null;

    /// <summary>The session whose row has this name.</summary>
    public static ulong SessionIn(ReadOnlySpan<byte> name) =>
        BinaryPrimitives.ReadUInt64LittleEndian(name[PrefixBytes..]);

    /// <summary>True for the row of an idempotency key, whose outcome stays as long as the session.</summary>
    public static bool IsIdempotencyKey(ReadOnlySpan<byte> name) => IdempotencyKey.IsKey(SessionIn(name));

    /// <summary>False when this version does not know a row of the system with these properties.</summary>
    public static bool IsWellFormed(KeyEntryFlags flags, ReadOnlySpan<byte> name, int valueBytes, bool hasTime)
    {
        if ((flags & KeyEntryFlags.System) == 0)
        {
            return (flags & (KeyEntryFlags.Session | KeyEntryFlags.Claim | KeyEntryFlags.Held)) == 0;
        }

        if (Of(name) is not { } kind || (flags & ~(kind == Claim ? KeyEntryFlags.Held : 0)) != kind.Flags)
        {
            return false;
        }

        return kind == Session ? IsSessionValue(valueBytes) && name.Length == SessionNameBytes && hasTime
            : kind == Claim ? valueBytes >= ClaimHeaderBytes && name.Length >= ClaimOwnerAt && hasTime
            : !hasTime || kind.Heaps.Length > 0;
    }

    /// <summary>The name of the one row of this kind.</summary>
    public byte[] ToName() => [Reserved, Letter];

    /// <summary>Writes the first bytes of a name of this kind.</summary>
    public void WritePrefix(Span<byte> name)
    {
        name[0] = Reserved;
        name[1] = Letter;
    }

    private static bool IsSessionValue(int bytes)
    {
        (int places, int rest) = Math.DivRem(bytes - SessionHeaderBytes, SessionPlaceBytes);
        return bytes >= SessionHeaderBytes && rest == 0 && (places == 0 || BitOperations.IsPow2(places));
    }

    private static SystemRowKind?[] ByLetter()
    {
        SystemRowKind?[] kinds = new SystemRowKind?[byte.MaxValue + 1];
        foreach (SystemRowKind kind in s_all)
        {
            InvariantException.Require(kinds[kind.Letter] is null, "every kind of row has a letter of its own");
            kinds[kind.Letter] = kind;
        }

        return kinds;
    }
}
