namespace Kahuna.Server.Partitions;

/// <summary>
/// Port: decides on which thread, and when, a loop that has something to do runs its turns. It calls
/// <see cref="PartitionLoop.RunTurns"/> exactly once per call of <see cref="Schedule"/>; the loop never asks twice
/// before it ran.
/// </summary>
internal interface ITurnScheduler
{
    /// <param name="loop">The loop that has become runnable.</param>
    /// <param name="mayRunHere">The calling thread may lend itself: it holds no lock and is not needed elsewhere at once.</param>
    void Schedule(PartitionLoop loop, bool mayRunHere);
}
