namespace Kahuna.Server.Partitions.Ports;

/// <summary>A loop as the scheduler of its turns sees it. Called by the scheduler only.</summary>
internal interface ITurns
{
    /// <summary>
    /// Runs turns until nothing waits, or <paramref name="turnsMax"/> of them; then asks the scheduler for another
    /// thread.
    /// </summary>
    void RunTurns(int turnsMax);
}
