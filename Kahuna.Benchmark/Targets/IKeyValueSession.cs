namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A session of a target that stores values under keys, as every target does. As <see cref="ITargetSession"/>.
/// </summary>
internal interface IKeyValueSession : ITargetSession
{
    ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value);

    /// <summary>Reads a key; <see cref="OperationResult.Miss"/> when it does not exist.</summary>
    ValueTask<OperationResult> GetAsync(string key);
}
