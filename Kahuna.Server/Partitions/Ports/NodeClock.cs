using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>Reads this node's monotonic clock as <see cref="NodeTime"/>. Stateless, any thread.</summary>
internal static class NodeClock
{
    /// <summary>The time now, rounded down to a millisecond.</summary>
    public static NodeTime Now(this TimeProvider clock) =>
        new((long)(clock.GetTimestamp() * 1000.0 / clock.TimestampFrequency));
}
