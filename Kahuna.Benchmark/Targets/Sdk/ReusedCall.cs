using System.Runtime.CompilerServices;
using System.Threading.Tasks.Sources;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>
/// Awaits a call of the client and converts its reply. One object serves all calls of a session, which has one at a
/// time; an asynchronous method would allocate here, because workers that are answered together return its pooled
/// objects together. Owned by the session.
/// </summary>
internal sealed class ReusedCall<TReply, TResult> : IValueTaskSource<TResult>
{
    private readonly Func<TReply, TResult> _convert;
    private readonly Action _complete;
    private ConfiguredValueTaskAwaitable<TReply>.ConfiguredValueTaskAwaiter _call;
    private ManualResetValueTaskSourceCore<TResult> _core;

    public ReusedCall(Func<TReply, TResult> convert)
    {
        _convert = convert;
        _complete = Complete;
    }

    /// <summary>The converted reply of <paramref name="call"/>.</summary>
    public ValueTask<TResult> Await(ValueTask<TReply> call)
    {
        _core.Reset();
        _call = call.ConfigureAwait(false).GetAwaiter();
        if (_call.IsCompleted)
        {
            Complete();
        }
        else
        {
            _call.UnsafeOnCompleted(_complete);
        }

        return new ValueTask<TResult>(this, _core.Version);
    }

    TResult IValueTaskSource<TResult>.GetResult(short token) => _core.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<TResult>.GetStatus(short token) => _core.GetStatus(token);

    void IValueTaskSource<TResult>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);

    private void Complete()
    {
        TResult result;
        try
        {
            result = _convert(_call.GetResult());
        }
        catch (Exception failure)
        {
            _core.SetException(failure);
            return;
        }

        _core.SetResult(result);
    }
}
