using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// Runs the turns of one loop: whether the loop is idle, running or due again, and what happens when a turn throws. Any
/// thread may signal; turns never overlap. After an exception that left a turn no turn follows.
/// </summary>
/// <param name="loop">The loop whose turns they are.</param>
/// <param name="turn">One turn.</param>
/// <param name="ports">
/// The scheduler, which gives the threads, and who is told of an exception that leaves a turn.
/// </param>
internal sealed class LoopTurns(PartitionLoop loop, Action turn, LoopPorts ports)
{
    private const int Idle = 0;
    private const int Running = 1;
    private const int Signalled = 2;

    private int _state;
    private bool _dead;

    /// <summary>
    /// There is something to do. Never throws because of what a turn does, so a thread that runs turns inline is not
    /// harmed.
    /// </summary>
    /// <param name="mayRunInline">The calling thread may run the turn.</param>
    public void Signal(bool mayRunInline)
    {
        // A cheap look first: while a signal is pending, another one adds nothing.
        if (Volatile.Read(ref _state) != Signalled && Interlocked.Exchange(ref _state, Signalled) == Idle)
        {
            Schedule(mayRunInline);
        }
    }

    /// <summary>For the turn that runs: another one follows it, in which everybody else has a share.</summary>
    public void RunAgain() => Volatile.Write(ref _state, Signalled);

    /// <summary>
    /// Runs turns until nothing waits, or <paramref name="turnsMax"/> of them; then asks the scheduler for another
    /// thread.
    /// </summary>
    public void Run(int turnsMax)
    {
        if (Volatile.Read(ref _dead))
        {
            return;
        }

        for (int i = 0; i < turnsMax; i++)
        {
            Volatile.Write(ref _state, Running);
            Interlocked.MemoryBarrier();
            try
            {
                turn();
            }
            catch (Exception error)
            {
                // Which part of the turn was carried out is not known: the log, the peers and the clients may have been
                // told different things.
                Die($"a turn of loop {loop.Number}", error);
                return;
            }

            if (Interlocked.CompareExchange(ref _state, Idle, Running) == Running)
            {
                return;
            }
        }

        Schedule(mayRunInline: false);
    }

    private void Schedule(bool mayRunInline)
    {
        try
        {
            ports.Scheduler.Schedule(loop, mayRunInline);
        }
        catch (Exception error) when (!Volatile.Read(ref _dead))
        {
            // Without a thread the loop would wait for ever, since everybody else believes that a turn is coming.
            Die($"scheduling loop {loop.Number}", error);
        }
    }

    private void Die(string where, Exception error)
    {
        Volatile.Write(ref _dead, true);
        ports.FatalErrors.Raise(where, error);
    }
}
