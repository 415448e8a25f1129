using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Runs a loop's turns on the thread that made it runnable, where that thread may run them inline: a hand-over between
/// threads costs more than a turn. A loop that stays busy moves to the thread pool, so that nobody is kept for long.
/// Any thread.
/// </summary>
internal sealed class InlineTurnScheduler : ITurnScheduler
{
    /// <summary>Turns of one inline drain: then the calling thread goes back to its own work.</summary>
    private const int InlineTurns = 2;

    /// <summary>Turns that a pool thread runs before it lets others have their turn.</summary>
    private const int PooledTurns = 64;

    public void Schedule(ITurns loop, bool mayRunInline)
    {
        if (mayRunInline)
        {
            loop.RunTurns(InlineTurns);
        }
        else
        {
            ThreadPool.UnsafeQueueUserWorkItem(static loop => loop.RunTurns(PooledTurns), loop, preferLocal: false);
        }
    }

    public void Later(Action action, int ms)
    {
        Timer? timer = null;
        timer = new Timer(
            _ =>
            {
                action();
                timer!.Dispose();
            },
            null,
            Timeout.Infinite,
            Timeout.Infinite);
        timer.Change(ms, Timeout.Infinite);
    }
}
