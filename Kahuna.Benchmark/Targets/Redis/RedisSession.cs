using System.Threading.Tasks.Sources;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>
/// One worker's way to Redis: its completion is reused for every request, because a worker has one request at a time.
/// Completed by the link that carries the request, exactly once per request.
/// </summary>
internal sealed class RedisSession(RedisConnection connection)
    : IKeyValueSession, IScriptSession, IValueTaskSource<OperationResult>
{
    private ManualResetValueTaskSourceCore<OperationResult> _core;
    private bool _isScript;

    public bool IsTimeout(Exception failure) => failure is TimeoutException;

    public ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        _core.Reset();
        connection.Link.SendSet(this, key, value.Span);
        return new ValueTask<OperationResult>(this, _core.Version);
    }

    public ValueTask<OperationResult> GetAsync(string key)
    {
        _core.Reset();
        connection.Link.SendGet(this, key);
        return new ValueTask<OperationResult>(this, _core.Version);
    }

    public ValueTask<OperationResult> RunAsync(string text, ScriptInput input)
    {
        _core.Reset();
        _isScript = true;
        connection.Link.SendEval(this, text, input);
        return new ValueTask<OperationResult>(this, _core.Version);
    }

    /// <summary>What a script returns is not looked at: a nil is no miss.</summary>
    public void Complete(OperationResult result) => _core.SetResult(_isScript ? OperationResult.Success : result);

    public void Fail(Exception failure) => _core.SetException(failure);

    OperationResult IValueTaskSource<OperationResult>.GetResult(short token) => _core.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<OperationResult>.GetStatus(short token) => _core.GetStatus(token);

    void IValueTaskSource<OperationResult>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);
}
