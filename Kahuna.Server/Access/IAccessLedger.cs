using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>Reads and changes the replicated records of users, roles and tokens. Any thread.</summary>
internal interface IAccessLedger
{
    /// <summary>The records as this node knows them.</summary>
    AccessBook Book { get; }

    /// <summary>
    /// Has all rows recorded at once, if the records still have the version; waits until this node has applied them.
    /// </summary>
    /// <param name="version">The version of the records on which the change was based.</param>
    /// <param name="rows">The rows, 1 to <see cref="AccessRow.RowsMax"/>.</param>
    /// <param name="ct">Ends the wait; the change may still be made.</param>
    Task<AccessCommit> ChangeAsync(ulong version, IReadOnlyList<AccessRow> rows, CancellationToken ct);
}

/// <summary>How a change of the records ended.</summary>
internal enum AccessCommit
{
    /// <summary>It is made, and this node obeys it.</summary>
    Applied,

    /// <summary>Other changes came first; nothing was changed. Look again.</summary>
    Conflict,

    /// <summary>The records would be larger than they may be; nothing was changed.</summary>
    Full,

    /// <summary>No answer within the time; it may have been made, or may still be.</summary>
    Unknown,
}
