using System.Security.Cryptography;

namespace Kahuna.Client.Connection;

/// <summary>
/// Everything through which the connection logic meets the world, so that a simulator can run it: the way to the nodes,
/// the clock, where loops run, and the seed of its random pauses. Immutable.
/// </summary>
/// <param name="Channel">The way to the nodes.</param>
/// <param name="Time">Clock and timers.</param>
/// <param name="Context">Where the loops run; null: the thread pool.</param>
/// <param name="Seed">Seed of the generator that spreads pauses.</param>
internal sealed record ConnectionPorts(IFrameChannel Channel, TimeProvider Time, SynchronizationContext? Context, int Seed)
{
    /// <summary>Gives ids for sessions, no two alike in the world.</summary>
    public Func<ulong> NewSessionId { get; init; } = static () => BitConverter.ToUInt64(RandomNumberGenerator.GetBytes(sizeof(ulong)));

    /// <summary>A healthy leader answers within milliseconds. What one owes that is silent for so long goes another way, under the numbers that it has.</summary>
    public TimeSpan Patience { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>What must not depend on the pool has threads of its own: in the real world, and not where a test or a simulator moves the clock.</summary>
    public bool HasThreads => Context is null && (ReferenceEquals(Time, TimeProvider.System) || Time is SuspendAwareTime);

    /// <summary>The real network.</summary>
    public static ConnectionPorts ForNetwork(KahunaClientOptions options) =>
        new(new GrpcFrameChannel(options), SuspendAwareTime.InPlaceOf(options.TimeProvider), Context: null, Guid.NewGuid().GetHashCode());
}
