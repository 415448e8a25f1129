namespace Kahuna.Wire.Commands;

/// <summary>
/// The kind of a command. Values are part of the log format. Kinds from 0x40 to 0x7F are proposed by leaders and
/// refused from clients. Kinds from 0x80 on are reads and never reach the log.
/// </summary>
internal enum CommandKind : byte
{
    /// <summary>Refused.</summary>
    Unset = 0,
    Set = 1,
    Delete = 2,
    Extend = 3,
    Increment = 4,
    SequenceCreate = 5,
    SequenceUpdate = 6,
    SequenceDelete = 7,

    /// <summary>Takes the next <see cref="Command.Count"/> values of a sequence.</summary>
    SequenceNext = 8,

    /// <summary>
    /// Claims a lock under an owner (<see cref="LockBody"/>) for a lease of <see cref="Command.LeaseMs"/>; may wait in
    /// the queue for <see cref="Command.WaitMs"/>.
    /// </summary>
    LockAcquire = 9,

    /// <summary>
    /// Renews the lease of the lock that the owner in the value holds under <see cref="Command.Token"/>.
    /// </summary>
    LockExtend = 10,

    /// <summary>
    /// Releases a lock or a place in its queue; owner and token as for <see cref="LockExtend"/>. See
    /// <see cref="Command.OnlyPlace"/>.
    /// </summary>
    LockRelease = 11,

    /// <summary>Deletes a bounded number of the keys of a range (<see cref="RangeRequest"/>).</summary>
    KeyRangeDelete = 12,

    /// <summary>
    /// Carries out one of two lists of operations, or nothing, depending on conditions (<see cref="TransactionBody"/>).
    /// The key is that of the first item.
    /// </summary>
    Transaction = 13,

    /// <summary>
    /// Runs a script (<see cref="Scripts.ScriptBody"/>) as one change. The key is one that the script names; all its
    /// keys must be of that key's bucket and of the command's durability.
    /// </summary>
    Script = 14,

    /// <summary>
    /// Prepares one partition's part of a transaction over several partitions (<see cref="PrepareBody"/>): looks at its
    /// conditions and holds its keys until the transaction is decided. The key is that of the first item, or the
    /// anchor's.
    /// </summary>
    TransactionPrepare = 15,

    /// <summary>
    /// Decides a transaction over several partitions in the group of the anchor's key: the first decision counts. The
    /// value is its id, the number the wanted <see cref="TransactionDecision"/>.
    /// </summary>
    TransactionDecide = 16,

    /// <summary>
    /// Carries out a decision for the part of one partition, and lets its keys go. The value is the id, the number the
    /// decision, the key that of the part.
    /// </summary>
    TransactionFinish = 17,

    /// <summary>
    /// Forgets decisions that all participants have carried out. The value is their ids, 1 to
    /// <see cref="Limits.ForgottenTransactionsMax"/>; the key is an anchor's, and the group that of all.
    /// </summary>
    TransactionForget = 18,

    /// <summary>Removes at most <see cref="Command.Number"/> keys whose time to live has passed.</summary>
    ExpireSweep = 0x40,

    /// <summary>
    /// Removes a bounded number of client sessions that were idle for <see cref="Command.Number"/> ms of cluster time,
    /// and outcomes that no client can ask for.
    /// </summary>
    SessionSweep = 0x41,

    /// <summary>Evicts the keys that the value names to free memory.</summary>
    Evict = 0x42,

    /// <summary>
    /// Ends at most <see cref="Command.Number"/> expired leases and applies the decisions about waiters in the value
    /// (<c>Locks/WaiterDecision</c>).
    /// </summary>
    LockSweep = 0x43,

    /// <summary>
    /// Counts up a row. It exists for tests of feature levels only: it needs <see cref="FeatureLevels.Test"/>.
    /// </summary>
    FeatureProbe = 0x47,

    /// <summary>Meta group: records partitions and voters, once.</summary>
    Configure = 0x48,

    /// <summary>Meta group: a node has started.</summary>
    RegisterNode = 0x49,

    /// <summary>Meta group: a node leaves an epoch of an ephemeral group.</summary>
    Pledge = 0x4A,

    /// <summary>Meta group: takes a pledge back.</summary>
    ReleasePledge = 0x4B,

    /// <summary>Meta group: allows longer leases in an epoch.</summary>
    RaiseCeiling = 0x4C,

    /// <summary>Meta group: raises the cluster's feature level.</summary>
    RaiseFeatureLevel = 0x4D,

    /// <summary>Meta group: gives slots to another partition.</summary>
    MoveSlots = 0x4E,

    /// <summary>The group gives slots away, whose keys it refuses from then on.</summary>
    ReleaseSlots = 0x4F,

    /// <summary>The group takes slots back that it had given away.</summary>
    AdoptSlots = 0x50,

    /// <summary>Meta group: changes the records about who may do what, if they still have the version that it names.
    /// </summary>
    AccessChange = 0x51,

    Get = 0x80,
    Exists = 0x81,
    SequenceGet = 0x82,

    /// <summary>
    /// Reads a page of the sequences of <see cref="Command.Partition"/> whose names begin with the key, from
    /// <see cref="Command.Cursor"/> on.
    /// </summary>
    SequenceList = 0x83,

    /// <summary>Reads who holds a lock.</summary>
    LockGet = 0x84,

    /// <summary>Reads a page of the locks of a partition, as <see cref="SequenceList"/> does.</summary>
    LockList = 0x85,

    /// <summary>
    /// Polls the claim of the owner in the value under <see cref="Command.Token"/>. While it waits, the answer may be
    /// delayed by <see cref="Command.HoldMs"/>.
    /// </summary>
    LockAwait = 0x86,

    /// <summary>
    /// As <see cref="LockGet"/>, but the answer may be delayed by <see cref="Command.HoldMs"/> while the first holder
    /// has <see cref="Command.Token"/> (0: nobody).
    /// </summary>
    LockObserve = 0x87,

    /// <summary>
    /// Reads a page of the keys of <see cref="Command.Partition"/> in order, as <see cref="RangeRequest"/> says.
    /// </summary>
    KeyRange = 0x88,

    /// <summary>
    /// Opens a cut of the range that a <see cref="RangeRequest"/> names: the leader keeps what changes from then on, so
    /// that pages can show the range as it is now. The outcome's number is the cut's.
    /// </summary>
    CutOpen = 0x89,

    /// <summary>
    /// Asks whether the range of a cut is still as it was when the cut was opened. <see cref="RangeRequest.Cut"/> names
    /// the cut.
    /// </summary>
    CutConfirm = 0x8A,

    /// <summary>Ends a cut. Its pages are refused from then on.</summary>
    CutEnd = 0x8B,

    /// <summary>
    /// Reads several keys at one moment: the value is a list of Get and Exists (<see cref="CommandList"/>). The key is
    /// that of the first item.
    /// </summary>
    GetMany = 0x8C,

    /// <summary>
    /// Holds a key for a pessimistic transaction (<see cref="HoldBody"/>) and reads it. The answer may be delayed by
    /// <see cref="Command.HoldMs"/> while others hold the key. Holds are in the leader's memory only.
    /// </summary>
    TransactionHold = 0x8D,

    /// <summary>
    /// Lets go of all that a pessimistic transaction holds in the group of the key. The value is the transaction's id.
    /// </summary>
    TransactionRelease = 0x8E,
}
