using System.Security.Cryptography;

namespace Kahuna.Client.Connection;

/// <summary>
/// Everything that the connection takes from its surroundings, so that a simulator can run it: network, clock,
/// scheduling and randomness. Immutable.
/// </summary>
/// <param name="Channel">Opens streams to the nodes.</param>
/// <param name="Time">Clock and timers.</param>
/// <param name="Context">Where the loops run; null for the thread pool.</param>
/// <param name="Seed">Seed of the generator for backoff.</param>
internal sealed record ConnectionPorts(
    IFrameChannel Channel, TimeProvider Time, SynchronizationContext? Context, int Seed)
{
    /// <summary>Returns a globally unique id for a session.</summary>
    public Func<ulong> NewSessionId { get; init; } = static () => BitConverter.ToUInt64(
        RandomNumberGenerator.GetBytes(sizeof(ulong)));

    /// <summary>
    /// How long a node may be silent while answers are due. A healthy leader answers within milliseconds. After this
    /// span its operations are sent elsewhere under the same session numbers.
    /// </summary>
    public TimeSpan Patience { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>
    /// True when time-critical work may run on threads of its own: with the real clock, and not under a test or
    /// simulator that moves the clock.
    /// </summary>
    public bool HasThreads =>
        Context is null && (ReferenceEquals(Time, TimeProvider.System) || Time is SuspendAwareTime);

    /// <summary>The ports of the real network.</summary>
    public static ConnectionPorts ForNetwork(ConnectionSettings settings) =>
        new(
            new GrpcFrameChannel(settings),
            SuspendAwareTime.InPlaceOf(settings.Time),
            Context: null,
            Guid.NewGuid().GetHashCode());
}
