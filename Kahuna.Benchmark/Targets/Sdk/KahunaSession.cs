using System.Runtime.CompilerServices;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Results;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>One worker's way through the public client. Used by its worker alone.</summary>
internal sealed class KahunaSession(KeyValues keyValues) : ITargetSession
{
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        SetResult result = await keyValues.SetAsync(key, value).ConfigureAwait(false);

        // An unconditional set that was not applied would be a fault of the server, not a miss.
        return result.Applied ? OperationResult.Success : throw new RequestFailedException("The server did not apply an unconditional set.");
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> GetAsync(string key)
    {
        GetResult result = await keyValues.GetAsync(key).ConfigureAwait(false);
        return result.Found ? OperationResult.Success : OperationResult.Miss;
    }
}
