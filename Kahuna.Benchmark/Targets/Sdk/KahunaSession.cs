using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Verification;
using Kahuna.Client;
using Kahuna.Client.Results;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>One worker's way through the public client. Used by its worker alone.</summary>
/// <param name="client">The client.</param>
/// <param name="page">Where values are noted; null: nowhere.</param>
internal sealed class KahunaSession(KahunaClient client, SequenceLedger.Page? page) : ITargetSession
{
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
        if (page is null)
        {
            await client.Sequences.ReserveAsync(name, 1).ConfigureAwait(false);
            return OperationResult.Success;
        }

        long start = Ticks.Now;
        page.Begin();
        try
        {
            page.Got((await client.Sequences.ReserveAsync(name, 1).ConfigureAwait(false)).First, start, Ticks.Now);
            return OperationResult.Success;
        }
        catch (KahunaException failure) when (failure.Outcome == OperationOutcome.DidNotHappen)
        {
            page.GotNothing();
            throw;
        }
    }
}
