namespace Kahuna.Benchmark.Targets;

/// <summary>A session of a target that writes many keys with one call. As <see cref="ITargetSession"/>.</summary>
internal interface IBatchSession : ITargetSession
{
    /// <summary>Writes <paramref name="value"/> to all keys. A key that cannot be written fails the request.</summary>
    ValueTask<OperationResult> SetManyAsync(IReadOnlyList<string> keys, ReadOnlyMemory<byte> value);
}
