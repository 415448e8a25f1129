namespace Kahuna.Benchmark.Targets;

/// <summary>A session of a target that has sequences. As <see cref="ITargetSession"/>.</summary>
internal interface ISequenceSession : ITargetSession
{
    /// <summary>Creates the sequence unless it exists, and returns how it stands.</summary>
    Task<SequenceStanding> CreateAsync(string name, CancellationToken cancellationToken);

    /// <summary>Takes the next value.</summary>
    ValueTask<long> NextAsync(string name);

    /// <summary>Reads the value that was taken last; null when there is none.</summary>
    Task<long?> ReadLatestAsync(string name);
}
