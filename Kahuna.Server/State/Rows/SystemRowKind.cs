using System.Buffers.Binary;
using System.Numerics;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Rows;

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

    private static readonly SystemRowKind[] s_all =
    [
        Session, KeptValue, Sequence, LatestIncarnation, Lock, Claim, LatestToken, LeasesBefore, FirstRevision,
        Configuration, Node, Group,
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

    /// <summary>The order of time in which a row of the system stands, or would.</summary>
    public static RowHeap HeapOf(in KeyEntry entry, ReadOnlySpan<byte> name)
    {
        if (entry.IsSession)
        {
            return IsIdempotencyKey(name) ? RowHeap.IdempotencyKeys
                : entry.ValueLength > SessionHeaderBytes ? RowHeap.LiveSessions
                : RowHeap.IdleSessions;
        }

        if (entry.IsClaim)
        {
            return entry.IsHeld ? RowHeap.Leases : RowHeap.Waiters;
        }

        SystemRowKind? kind = Of(name);
        InvariantException.Require(kind is { Heaps.Length: 1 }, "only rows of kinds with a heap have a time");
        return kind.Heaps[0];
    }

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
