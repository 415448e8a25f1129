namespace Kahuna.Server.State.Rows;

/// <summary>
/// Hears of each row of a <see cref="KeyStore"/> before it changes. Called by the owner of the store.
/// </summary>
internal interface IRowObserver
{
    /// <summary>A row, or what is kept of its history, is about to change.</summary>
    void BeforeChange(Row row);
}
