namespace Kahuna.Server.State.Meta;

/// <summary>
/// The records about who may do what, as the meta group keeps them: bytes that it does not read. Immutable; any thread.
/// </summary>
/// <param name="Version">Counts the changes; 0 before the first.</param>
/// <param name="Recent">The ids of the newest changes, the newest last: that of <paramref name="Version"/>.</param>
/// <param name="Rows">The records, in no order.</param>
internal sealed record AccessRows(ulong Version, IReadOnlyList<AccessChangeId> Recent, IReadOnlyList<AccessRow> Rows)
{
    /// <summary>Changes whose ids are kept.</summary>
    public const int RecentMax = 16;

    /// <summary>Before the first change.</summary>
    public static AccessRows Empty { get; } = new(0, [], []);
}

/// <summary>Tells changes apart: random.</summary>
internal readonly record struct AccessChangeId(ulong High, ulong Low);

/// <summary>One record, or what becomes of it. Immutable.</summary>
/// <param name="Kind">What it is about: <c>Access/AccessRowKind</c>.</param>
/// <param name="Name">Unique within the kind, 1 to <see cref="NameBytesMax"/> bytes.</param>
/// <param name="Value">Its content, at most <see cref="ValueBytesMax"/> bytes; null: it is deleted.</param>
internal sealed record AccessRow(byte Kind, byte[] Name, byte[]? Value)
{
    /// <summary>Longest name.</summary>
    public const int NameBytesMax = 256;

    /// <summary>Longest content.</summary>
    public const int ValueBytesMax = 64 * 1024;

    /// <summary>Rows of one change at most.</summary>
    public const int RowsMax = 64;
}
