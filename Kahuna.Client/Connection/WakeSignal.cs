using System.Threading.Tasks.Sources;

namespace Kahuna.Client.Connection;

/// <summary>
/// Wakes one waiting loop without an allocation, any number of times. Exactly one <see cref="Fire"/> per wait; the
/// owner ensures that with a flag. Owned by a <see cref="NodeStream"/>.
/// </summary>
internal sealed class WakeSignal(SynchronizationContext? context) : IValueTaskSource, IThreadPoolWorkItem
{
    private ManualResetValueTaskSourceCore<bool> _core;

    /// <summary>Completes with the next <see cref="Fire"/>. One waiter at a time.</summary>
    public ValueTask WaitAsync() => new(this, _core.Version);

    /// <summary>
    /// Wakes the loop: on this thread before the call returns, or on the pool behind the work already queued there. The
    /// latter lets callers that were woken together fill one frame. A loop with a context always runs there.
    /// </summary>
    public void Fire(bool inline)
    {
        if (inline || context is not null)
        {
            _core.SetResult(true);
        }
        else
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
    }

    /// <inheritdoc/>
    void IThreadPoolWorkItem.Execute() => _core.SetResult(true);

    /// <inheritdoc/>
    void IValueTaskSource.GetResult(short token)
    {
        _core.GetResult(token);
        _core.Reset();
    }

    /// <inheritdoc/>
    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token) => _core.GetStatus(token);

    /// <inheritdoc/>
    void IValueTaskSource.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);
}
