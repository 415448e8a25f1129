using System.Threading.Tasks.Sources;

namespace Kahuna.Benchmark.Pacing;

/// <summary>
/// The place where one consumer of an open loop waits for its next request; reused for every wait. Owned by the
/// consumer, completed by the <see cref="PermitGate"/>. The continuation runs on the thread pool, so that the pacing
/// thread never does a consumer's work.
/// </summary>
internal sealed class PermitWaiter : IValueTaskSource<long>
{
    private ManualResetValueTaskSourceCore<long> _core = new() { RunContinuationsAsynchronously = true };

    /// <summary>Prepares the next wait; called by the gate before it keeps the waiter.</summary>
    public ValueTask<long> Begin()
    {
        _core.Reset();
        return new ValueTask<long>(this, _core.Version);
    }

    public void Complete(long number) => _core.SetResult(number);

    long IValueTaskSource<long>.GetResult(short token) => _core.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<long>.GetStatus(short token) => _core.GetStatus(token);

    void IValueTaskSource<long>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);
}
