namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// The one clock and the one queue of a run: everything that happens is an action that was put here, and time jumps
/// from one to the next. Owned by one thread; a call from another one ends the run, since something has escaped.
/// </summary>
internal sealed class SimScheduler(EventLog log)
{
    private readonly MomentHeap _queue = new();
    private readonly int _thread = Environment.CurrentManagedThreadId;

    /// <summary>Nanoseconds since the beginning.</summary>
    public long NowNs { get; private set; }

    /// <summary>Actions that ran so far.</summary>
    public long Step { get; private set; }

    /// <summary>What another thread did, if one did anything.</summary>
    public string? Escaped { get; private set; }

    public EventLog Log => log;

    public void After(long delayNs, Action action) => At(NowNs + Math.Max(0, delayNs), action);

    public void At(long atNs, Action action)
    {
        CheckThread("put an action into the queue");
        _queue.Add(Math.Max(atNs, NowNs), action);
    }

    /// <summary>
    /// Runs the next action that is due until then. False when there is none; time is then at
    /// <paramref name="untilNs"/>.
    /// </summary>
    public bool RunNext(long untilNs)
    {
        if (_queue.FirstNs is not { } atNs || atNs > untilNs)
        {
            NowNs = Math.Max(NowNs, untilNs);
            return false;
        }

        NowNs = atNs;
        Action action = _queue.TakeFirst();
        Step++;
        action();
        return true;
    }

    public void Note(SimEvent kind, int node, long a = 0, long b = 0, string? words = null) =>
        log.Add(NowNs, Step, kind, node, a, b, words);

    /// <summary>To be called by everything that shipped code reaches.</summary>
    public void CheckThread(string doing)
    {
        if (Environment.CurrentManagedThreadId != _thread)
        {
            Escaped ??= $"{doing}: {Environment.StackTrace}";
            throw new InvalidOperationException($"Another thread than the run's {doing}.");
        }
    }
}
