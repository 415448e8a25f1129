namespace Kahuna.Benchmark.Targets;

/// <summary>A session of a target whose keys lie in partitions. As <see cref="ITargetSession"/>.</summary>
internal interface IPartitionedSession : ITargetSession
{
    /// <summary>Asks for the number of partitions.</summary>
    Task<int> CountPartitionsAsync(CancellationToken cancellationToken);
}
