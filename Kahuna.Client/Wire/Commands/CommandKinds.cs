using static Kahuna.Wire.Commands.CommandFlags;
using static Kahuna.Wire.Commands.CommandTraits;

namespace Kahuna.Wire.Commands;

/// <summary>
/// One row per command kind, from which admission, routing, dispatch and the documents are derived. A new kind needs a
/// value in <see cref="CommandKind"/>, a row here, a handler in its table of the state, and methods of the service and
/// the client. Stateless, any thread.
/// </summary>
internal static class CommandKinds
{
    private const CommandFlags Numbered = Session | Opening;
    private const CommandFlags Write = Numbered | Fenced;
    private const CommandFlags Conditions = IfPresent | IfValue | IfRevision | NullCompared;
    private const CommandFlags SetFlags =
        Conditions | IfAbsent | CommandFlags.Ttl | Write | WithoutHistory | ReturnPrevious | NullValue;

    private static readonly CommandKindRow s_unknown = new(
        CommandKind.Unset, "unknown", CommandTable.None, CommandTraits.None);

    private static readonly CommandKindRow[] s_byKind = ByKind(
    [
        // Keys and values.
        new(CommandKind.Set, "set", CommandTable.KeyValues, FromClients | OfOneKey, SetFlags),
        new(CommandKind.Delete, "delete", CommandTable.KeyValues, FromClients | OfOneKey | FreesMemory,
            Conditions | Write | WithoutHistory | ReturnPrevious),
        new(CommandKind.Extend, "extend", CommandTable.KeyValues, FromClients | OfOneKey | FreesMemory,
            Conditions | Write | CommandFlags.Ttl),
        new(CommandKind.Increment, "increment", CommandTable.KeyValues, FromClients | OfOneKey,
            Conditions | Write | Number | WithoutHistory),
        new(CommandKind.Get, "get", CommandTable.KeyValues, FromClients | OfOneKey, AtRevision | Positioned),
        new(CommandKind.Exists, "exists", CommandTable.KeyValues, FromClients | OfOneKey, AtRevision | Positioned),
        new(CommandKind.KeyRange, "key range", CommandTable.KeyValues, FromClients | IsList,
            Number | AtRevision | IfValue | IfRevision | Positioned),
        new(CommandKind.CutOpen, "cut open", CommandTable.KeyValues, FromClients | IsList | ConcernsCut,
            Number | AtRevision | IfValue),
        new(CommandKind.CutConfirm, "cut confirm", CommandTable.KeyValues, FromClients | IsList | ConcernsCut,
            Number | AtRevision | IfValue | IfRevision),
        new(CommandKind.CutEnd, "cut end", CommandTable.KeyValues, FromClients | IsList | ConcernsCut,
            Number | AtRevision | IfValue | IfRevision),
        new(CommandKind.KeyRangeDelete, "key range delete", CommandTable.KeyValues,
            FromClients | FreesMemory | IsList | ReturnsValue,
            Numbered | Number | AtRevision | IfValue | WithoutHistory),
        new(CommandKind.Transaction, "transaction", CommandTable.KeyValues, FromClients | HasItems | ReturnsValue,
            Write | IfValue),
        new(CommandKind.Script, "script", CommandTable.KeyValues, FromClients | ReturnsValue, Write),
        new(CommandKind.TransactionPrepare, "transaction prepare", CommandTable.KeyValues,
            FromClients | HasItems | ReturnsValue, Numbered | IfValue),
        new(CommandKind.TransactionDecide, "transaction decide", CommandTable.KeyValues,
            FromClients | FreesMemory | ReturnsValue, Write | Number),
        new(CommandKind.TransactionFinish, "transaction finish", CommandTable.KeyValues,
            FromClients | FreesMemory | ReturnsValue, Numbered | Number),
        new(CommandKind.TransactionForget, "transaction forget", CommandTable.KeyValues, FromClients | FreesMemory,
            Numbered),
        new(CommandKind.GetMany, "get many", CommandTable.KeyValues, FromClients | HasItems, Positioned),
        new(CommandKind.TransactionHold, "transaction hold", CommandTable.KeyValues, FromClients | MayBeHeld, Number),
        new(CommandKind.TransactionRelease, "transaction release", CommandTable.KeyValues, FromClients),

        // Sequences.
        new(CommandKind.SequenceCreate, "sequence create", CommandTable.Sequences, FromClients, Numbered),
        new(CommandKind.SequenceUpdate, "sequence update", CommandTable.Sequences, FromClients, Numbered),
        new(CommandKind.SequenceDelete, "sequence delete", CommandTable.Sequences, FromClients | FreesMemory, Numbered),
        new(CommandKind.SequenceNext, "sequence next", CommandTable.Sequences, FromClients, Numbered | Number | Keyed),
        new(CommandKind.SequenceGet, "sequence get", CommandTable.Sequences, FromClients),
        new(CommandKind.SequenceList, "sequence list", CommandTable.Sequences, FromClients | IsList,
            Number | AtRevision),

        // Locks.
        new(CommandKind.LockAcquire, "lock acquire", CommandTable.Locks, FromClients | GrantsLease,
            Numbered | CommandFlags.Ttl | Number),
        new(CommandKind.LockExtend, "lock extend", CommandTable.Locks, FromClients | GrantsLease | FreesMemory,
            Numbered | CommandFlags.Ttl | IfRevision),
        new(CommandKind.LockRelease, "lock release", CommandTable.Locks, FromClients | FreesMemory,
            Numbered | IfRevision | IfAbsent),
        new(CommandKind.LockGet, "lock get", CommandTable.Locks, FromClients),
        new(CommandKind.LockList, "lock list", CommandTable.Locks, FromClients | IsList, Number | AtRevision),
        new(CommandKind.LockAwait, "lock await", CommandTable.Locks, FromClients | MayBeHeld, IfRevision | Number),
        new(CommandKind.LockObserve, "lock observe", CommandTable.Locks, FromClients | MayBeHeld, IfRevision | Number),

        // Proposed by leaders.
        new(CommandKind.ExpireSweep, "expire sweep", CommandTable.KeyValues, FreesMemory),
        new(CommandKind.Evict, "evict", CommandTable.KeyValues, FreesMemory),
        new(CommandKind.SessionSweep, "session sweep", CommandTable.Sessions, FreesMemory),
        new(CommandKind.LockSweep, "lock sweep", CommandTable.Locks, FreesMemory),
        new(CommandKind.Configure, "configure", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.RegisterNode, "register node", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.Pledge, "pledge", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.ReleasePledge, "release pledge", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.RaiseCeiling, "raise ceiling", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.RaiseFeatureLevel, "raise feature level", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.MoveSlots, "move slots", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.AccessChange, "access change", CommandTable.Meta, CommandTraits.None),
        new(CommandKind.ReleaseSlots, "release slots", CommandTable.Slots, FreesMemory),
        new(CommandKind.AdoptSlots, "adopt slots", CommandTable.Slots, FreesMemory),

        // For tests of feature levels.
        new(CommandKind.FeatureProbe, "feature probe", CommandTable.Probe, CommandTraits.None)
        {
            Since = FeatureLevels.Test,
        },
    ]);

    /// <summary>The row of a kind; a row without a table for an unknown kind.</summary>
    public static CommandKindRow Of(CommandKind kind) => s_byKind[(byte)kind];

    /// <summary>True for kinds that change nothing and never reach the log.</summary>
    public static bool IsRead(CommandKind kind) => (byte)kind >= 0x80;

    /// <summary>True for commands on locks.</summary>
    public static bool IsLock(CommandKind kind) => Of(kind).Table == CommandTable.Locks;

    /// <summary>True for commands on sequences.</summary>
    public static bool IsSequence(CommandKind kind) => Of(kind).Table == CommandTable.Sequences;

    /// <summary>True for writes of one key, which a transaction that holds the key keeps away.</summary>
    public static bool WritesKey(CommandKind kind) => Has(kind, OfOneKey) && !IsRead(kind);

    /// <summary>True for reads of one key.</summary>
    public static bool ReadsKey(CommandKind kind) => Has(kind, OfOneKey) && IsRead(kind);

    public static bool Has(CommandKind kind, CommandTraits trait) => (s_byKind[(byte)kind].Traits & trait) != 0;

    private static CommandKindRow[] ByKind(CommandKindRow[] rows)
    {
        CommandKindRow[] byKind = new CommandKindRow[byte.MaxValue + 1];
        Array.Fill(byKind, s_unknown);
        foreach (CommandKindRow row in rows)
        {
            ref CommandKindRow place = ref byKind[(byte)row.Kind];
            place = place == s_unknown ? row : throw new InvalidOperationException($"{row.Kind} has two rows.");
        }

        return byKind;
    }
}

/// <summary>The properties of one command kind. Immutable; see <see cref="CommandKinds"/>.</summary>
/// <param name="Kind">The kind.</param>
/// <param name="Name">Its name in messages, in lower case.</param>
/// <param name="Table">The table of the state that applies it.</param>
/// <param name="Traits">How it is processed.</param>
/// <param name="Flags">The flags that a client may set.</param>
internal sealed record CommandKindRow(
    CommandKind Kind,
    string Name,
    CommandTable Table,
    CommandTraits Traits,
    CommandFlags Flags = CommandFlags.None)
{
    /// <summary>
    /// The first feature level at which it is carried out. A leader refuses it below that; an entry of a lower level
    /// that has it all the same gives <see cref="Outcomes.OutcomeStatus.Unimplemented"/> on every node.
    /// </summary>
    public FeatureLevel Since { get; init; }

    /// <summary>True for kinds that change nothing and never reach the log.</summary>
    public bool IsRead => CommandKinds.IsRead(Kind);

    /// <summary>The name of the key's field in messages.</summary>
    public string KeyField => Table switch
    {
        CommandTable.Sequences => "name",
        CommandTable.Locks => "resource",
        _ => "key",
    };

    public bool Has(CommandTraits trait) => (Traits & trait) != 0;
}

/// <summary>How a command kind is processed. Not stored.</summary>
[Flags]
internal enum CommandTraits : ushort
{
    None = 0,

    /// <summary>Clients may send it. Other kinds are proposed by leaders only.</summary>
    FromClients = 1 << 0,

    /// <summary>It frees memory or needs none, so it is accepted when the memory limit is reached.</summary>
    FreesMemory = 1 << 1,

    /// <summary>It grants or renews a lease.</summary>
    GrantsLease = 1 << 2,

    /// <summary>A long poll: the leader may delay its answer by the carried hold.</summary>
    MayBeHeld = 1 << 3,

    /// <summary>
    /// It reads a page of names. The number is the partition; the key is the common prefix and may be empty.
    /// </summary>
    IsList = 1 << 4,

    /// <summary>Its value is a list of commands, whose keys must lie in one partition.</summary>
    HasItems = 1 << 5,

    /// <summary>Its outcome carries a value, which is remembered under the command's number.</summary>
    ReturnsValue = 1 << 6,

    /// <summary>It is about a cut, which the leader keeps beside the state.</summary>
    ConcernsCut = 1 << 7,

    /// <summary>It reads or writes the key that it names, and nothing else.</summary>
    OfOneKey = 1 << 8,
}

/// <summary>The table of the state that applies a command or owns a row. Not stored.</summary>
internal enum CommandTable : byte
{
    /// <summary>No table: an unknown kind.</summary>
    None,

    /// <summary>Keys with their values and history.</summary>
    KeyValues,

    /// <summary>Locks with their holders and queues.</summary>
    Locks,

    /// <summary>Sequences.</summary>
    Sequences,

    /// <summary>Client sessions and idempotency keys, with their outcomes.</summary>
    Sessions,

    /// <summary>The records of the meta group.</summary>
    Meta,

    /// <summary>The count that tests of feature levels look at.</summary>
    Probe,
    /// <summary>The slots that a group has given away.</summary>
    Slots,
}
