namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// Where asynchronous code of a run goes on after each await: in the run's queue, in the order in which it became able
/// to. Owned by one run.
/// </summary>
/// <param name="after">Puts an action into the run's queue, so many nanoseconds from now.</param>
internal sealed class SimContext(Action<long, Action> after) : SynchronizationContext
{
    /// <summary>What a thread takes to wake up.</summary>
    private const long WakeNs = 2_000;

    public override void Post(SendOrPostCallback d, object? state) => after(WakeNs, () => Run(() => d(state)));

    public override void Send(SendOrPostCallback d, object? state) =>
        throw new InvalidOperationException("Nobody waits for another thread in a run.");

    public override SynchronizationContext CreateCopy() => this;

    /// <summary>Runs something here and now.</summary>
    public void Run(Action action)
    {
        SynchronizationContext? before = Current;
        SetSynchronizationContext(this);
        try
        {
            action();
        }
        finally
        {
            SetSynchronizationContext(before);
        }
    }
}
