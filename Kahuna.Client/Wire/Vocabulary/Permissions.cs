namespace Kahuna;

/// <summary>
/// What a role allows on the names that its grants cover. A command may need several: a transaction that sets a key
/// needs <see cref="Transaction"/> and <see cref="Write"/> on it. Values are stored.
/// </summary>
[Flags]
public enum Permissions
{
    /// <summary>Nothing.</summary>
    None = 0,

    /// <summary>
    /// Read keys: values, revisions, whether they exist, pages of names. Conditions of writes need it.
    /// </summary>
    Read = 1 << 0,

    /// <summary>Set, delete, extend and increment keys.</summary>
    Write = 1 << 1,

    /// <summary>Acquire, release and look at locks, and fence writes with them.</summary>
    Lock = 1 << 2,

    /// <summary>Create, change, delete, read and advance sequences.</summary>
    Sequence = 1 << 3,

    /// <summary>Watch keys; needs <see cref="Read"/> too.</summary>
    Watch = 1 << 4,

    /// <summary>Run scripts; needs <see cref="Read"/> and <see cref="Write"/> on the whole bucket too.</summary>
    Script = 1 << 5,

    /// <summary>Transactions; each operation needs its own permission too.</summary>
    Transaction = 1 << 6,

    /// <summary>Users, roles and tokens, and the state of nodes. Its grants cover all names.</summary>
    Admin = 1 << 7,

    /// <summary>Everything that has to do with data: all but <see cref="Admin"/>.</summary>
    Data = Read | Write | Lock | Sequence | Watch | Script | Transaction,
}
