namespace Kahuna.Client.Connection;

/// <summary>
/// Decides which unanswered operations are sent again: those at a former leader, those that a node forwarded before it
/// became leader itself, and those at a silent node. Owned by the <see cref="ClusterConnection"/>. Any thread calls
/// <see cref="OnRoutesChanged"/>; its timer calls <see cref="Take"/>.
/// </summary>
/// <param name="clock">The client's clock.</param>
/// <param name="patience">How long a node may be silent, in ticks of the clock.</param>
/// <param name="leavesSilent">
/// Operations leave a silent node even if no other leader is known: another node forwards them.
/// </param>
internal sealed class Relocation(ConnectionClock clock, long patience, bool leavesSilent)
{
    // A former leader answers its requests within a round trip; the others leave after this span.
    private static readonly TimeSpan s_grace = TimeSpan.FromMilliseconds(100);

    private readonly long _grace = clock.Of(s_grace);
    private long _changedAt;
    private long _lookedAt;

    /// <summary>A leader changed or a node connected.</summary>
    public void OnRoutesChanged(long now) => Volatile.Write(ref _changedAt, now);

    /// <summary>Takes the operations that must be sent again now.</summary>
    public List<OperationRef> Take(RouteTable routes, long now)
    {
        List<OperationRef> moved = [];
        long changed = Volatile.Read(ref _changedAt);
        bool isRouteNew = changed != _lookedAt;
        if (isRouteNew && now - changed >= _grace)
        {
            // Every request that went to the wrong node before the change is old enough now.
            _lookedAt = changed;
        }

        foreach (NodeLink link in routes.Links)
        {
            if (link.Current is not { } stream)
            {
                continue;
            }

            if (leavesSilent && stream.IsSuspect && routes.AnyReady(0, stream) is { IsSuspect: false })
            {
                stream.TakeAway(static _ => true, now - patience, moved);
            }
            else if (isRouteNew)
            {
                // A call that the new leader forwarded earlier still waits for the old leader's answer.
                stream.TakeAway(
                    operation =>
                        routes.Live(operation.Attempt.Route) is { } live
                            && (live != stream || operation.Attempt.IsForwarded),
                    now - _grace,
                    moved);
            }
        }

        return moved;
    }
}
