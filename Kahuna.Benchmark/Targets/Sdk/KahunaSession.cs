using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Verification;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Results;
using Kahuna.Client.Sequences;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>One worker's way through the public client. Used by its worker alone.</summary>
/// <param name="client">The client.</param>
/// <param name="sequences">Where values are noted; null: nowhere.</param>
/// <param name="locks">Where locks are noted; null: nowhere.</param>
/// <param name="handover">What the workers of a target tell each other.</param>
internal sealed class KahunaSession(KahunaClient client, SequenceLedger? sequences, LockLedger? locks, HandoverClock handover) : ITargetSession
{
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(10);
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(10);
    private static readonly LockOptions s_options = new() { AutoRenew = false };

    /// <summary>With <c>--verify</c> every other lock is kept for so long: two holders can be seen only while there is a holder.</summary>
    private static readonly TimeSpan s_hold = TimeSpan.FromMilliseconds(1);

    private readonly SequenceLedger.Page? _values = sequences?.Open();
    private readonly LockLedger.Page? _grants = locks?.Open();
    private bool _holds;

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        SetResult result = await client.KeyValues.SetAsync(key, value).ConfigureAwait(false);

        // An unconditional set that was not applied would be a fault of the server, not a miss.
        return result.Applied ? OperationResult.Success : throw new RequestFailedException("The server did not apply an unconditional set.");
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> GetAsync(string key)
    {
        GetResult result = await client.KeyValues.GetAsync(key).ConfigureAwait(false);
        return result.Found ? OperationResult.Success : OperationResult.Miss;
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> NextAsync(string name)
    {
        if (_values is null)
        {
            await client.Sequences.ReserveAsync(name, 1).ConfigureAwait(false);
            return OperationResult.Success;
        }

        long start = Ticks.Now;
        _values.Begin();
        try
        {
            SequenceRange range = await client.Sequences.ReserveAsync(name, 1).ConfigureAwait(false);
            _values.Got(new SequenceLedger.Entry(range.First, start, Ticks.Now));
            return OperationResult.Success;
        }
        catch (KahunaException failure) when (failure.Outcome == OperationOutcome.DidNotHappen)
        {
            _values.GotNothing();
            throw;
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> LockAsync(string name)
    {
        long start = Ticks.Now;
        _grants?.Begin();
        LockHandle? handle;
        try
        {
            handle = await client.Locks.TryAcquireAsync(name, s_lease, s_options).ConfigureAwait(false);
        }
        catch (KahunaException failure) when (failure.Outcome == OperationOutcome.DidNotHappen)
        {
            _grants?.GotNothing();
            throw;
        }

        if (handle is null)
        {
            _grants?.GotNothing();
            return OperationResult.Miss;
        }

        long granted = Ticks.Now;
        long surely = granted + Ticks.From(handle.Remaining);
        if (_grants is not null)
        {
            _holds = !_holds;
            if (_holds)
            {
                await Task.Delay(s_hold).ConfigureAwait(false);
            }

            _grants.Got(new LockLedger.Entry(name, handle.Token, start, granted, Math.Min(Ticks.Now, surely)));
        }

        if (!await handle.ReleaseAsync().ConfigureAwait(false) && Ticks.Now < surely)
        {
            locks?.LostEarly();
        }

        return OperationResult.Success;
    }

    public long? MeasuredFrom { get; private set; }

    public long? MeasuredTo { get; private set; }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> HandoverAsync(string name)
    {
        LockHandle handle = await client.Locks.AcquireAsync(name, s_lease, s_wait, s_options).ConfigureAwait(false);
        MeasuredTo = Ticks.Now;
        long released = handover.Take();
        MeasuredFrom = released == 0 ? MeasuredTo : released;
        handover.Releases(Ticks.Now);
        await handle.ReleaseAsync().ConfigureAwait(false);

        // The first has it from nobody.
        return released == 0 ? OperationResult.Miss : OperationResult.Success;
    }
}
