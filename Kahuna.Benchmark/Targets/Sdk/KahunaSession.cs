using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Timing;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Sequences;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>One worker's way through the public client. Used by its worker alone.</summary>
internal class KahunaSession : IKeyValueSession, ILockSession, ISequenceSession, IScriptSession
{
    private static readonly LockOptions s_lockOptions = new() { AutoRenew = false };

    private readonly KahunaClient _client;
    private readonly ReusedCall<LockHandle?, LockGrant?> _tryAcquire;
    private readonly ReusedCall<LockHandle, LockGrant> _acquire;
    private readonly ReusedCall<SequenceRange, long> _reserve = new(static range => range.First);
    private readonly ScriptCalls _scripts;
    private LockHandle? _lock;

    public KahunaSession(KahunaClient client)
    {
        _client = client;
        _scripts = new ScriptCalls(client.Scripts);
        _tryAcquire = new ReusedCall<LockHandle?, LockGrant?>(handle => handle is null ? null : Granted(handle));
        _acquire = new ReusedCall<LockHandle, LockGrant>(Granted);
    }

    public bool IsTimeout(Exception failure) => failure is KahunaException { Code: KahunaErrorCode.DeadlineExceeded };

    public bool DidNotHappen(Exception failure) =>
        failure is KahunaException { Outcome: OperationOutcome.DidNotHappen };

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        SetResult result = await _client.KeyValues.SetAsync(key, value).ConfigureAwait(false);

        // An unconditional set that was not applied would be a fault of the server, not a miss.
        return result.Applied
            ? OperationResult.Success
            : throw new RequestFailedException("The server did not apply an unconditional set.");
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> GetAsync(string key)
    {
        GetResult result = await _client.KeyValues.GetAsync(key).ConfigureAwait(false);
        return result.Found ? OperationResult.Success : OperationResult.Miss;
    }

    public ValueTask<LockGrant?> TryAcquireAsync(string name, TimeSpan lease) =>
        _tryAcquire.Await(_client.Locks.TryAcquireAsync(name, lease, s_lockOptions));

    public ValueTask<LockGrant> AcquireAsync(string name, TimeSpan lease, TimeSpan wait) =>
        _acquire.Await(_client.Locks.AcquireAsync(name, lease, wait, s_lockOptions));

    public ValueTask<bool> ReleaseAsync() =>
        _lock?.ReleaseAsync() ?? throw new InvalidOperationException("No lock was acquired.");

    public async Task<SequenceStanding> CreateAsync(string name, CancellationToken cancellationToken)
    {
        await _client.Sequences.CreateAsync(name, ct: cancellationToken).ConfigureAwait(false);
        SequenceDescription? found = await _client.Sequences.GetAsync(name, cancellationToken).ConfigureAwait(false);
        long latest = found?.Latest ?? (found?.Initial - 1) ?? 0;
        return new SequenceStanding(latest, found is { Increment: 1, Cycle: false });
    }

    public ValueTask<long> NextAsync(string name) => _reserve.Await(_client.Sequences.ReserveAsync(name, 1));

    public async Task<long?> ReadLatestAsync(string name) =>
        (await _client.Sequences.GetAsync(name).ConfigureAwait(false))?.Latest;

    public ValueTask<OperationResult> RunAsync(string text, ScriptInput input) => _scripts.RunAsync(text, input);

    private LockGrant Granted(LockHandle handle)
    {
        _lock = handle;

        // The clock is read before the rest of the lease, so that the end is never too late.
        long now = Ticks.Now;
        return new LockGrant(handle.Token.Value, now, now + Ticks.From(handle.Remaining));
    }
}
