namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: decides on which thread, and when, a loop that has something to do runs its turns
/// (docs/adr/0007-turns-on-lent-threads.md). It calls <see cref="ITurns.RunTurns"/> exactly once per call of
/// <see cref="Schedule"/>; the loop never asks twice before it ran. Any thread.
/// </summary>
internal interface ITurnScheduler
{
    /// <param name="loop">The loop that has become runnable.</param>
    /// <param name="mayRunInline">
    /// The turns may run inline, on the calling thread: it holds no lock and is not needed elsewhere at once.
    /// </param>
    void Schedule(ITurns loop, bool mayRunInline);

    /// <summary>Calls an action once, on any thread, when about this time in ms has passed.</summary>
    void Later(Action action, int ms);
}
