using Kahuna.Server.Partitions;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Runs a loop's turns on the thread that made it runnable, where that thread may lend itself: a hand-over between
/// threads costs more than a turn. A loop that stays busy moves to the thread pool, so that nobody is kept for long. Any thread.
/// </summary>
internal sealed class InlineTurnScheduler : ITurnScheduler
{
    /// <summary>Turns that a lent thread runs before it goes back to its own work.</summary>
    private const int LentTurns = 2;

    /// <summary>Turns that a pool thread runs before it lets others have their turn.</summary>
    private const int PooledTurns = 64;

    public void Schedule(PartitionLoop loop, bool mayRunHere)
    {
        if (mayRunHere)
        {
            loop.RunTurns(LentTurns);
        }
        else
        {
            ThreadPool.UnsafeQueueUserWorkItem(static loop => loop.RunTurns(PooledTurns), loop, preferLocal: false);
        }
    }
}
