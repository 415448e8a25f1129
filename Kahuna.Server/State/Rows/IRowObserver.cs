namespace Kahuna.Server.State.Rows;

/// <summary>
/// Hears of each row of a <see cref="KeyStore"/> before it changes. Called by the owner of the store.
/// </summary>
internal interface IRowObserver
{
    /// <summary>A row is about to change.</summary>
    void BeforeChange(Row row);

    /// <summary>What is kept of a row's history is about to change. The row itself does not.</summary>
    void BeforeHistoryChange(Row row);

    /// <summary>A key was added in this row.</summary>
    void Created(Row row);

    /// <summary>After <see cref="BeforeChange"/>: the key in this row is about to be forgotten.</summary>
    void BeforeForgetting(Row row);
}
