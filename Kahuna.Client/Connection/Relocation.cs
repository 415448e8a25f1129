namespace Kahuna.Client.Connection;

/// <summary>
/// Decides which operations are sent again before their node has answered: those at a node that no longer leads their
/// partition, those that a node forwarded before it became the leader itself, and those at a silent node. Owned by the
/// <see cref="ClusterConnection"/>; <see cref="OnRoutesChanged"/> by any thread, <see cref="Take"/> by its timer.
/// </summary>
/// <param name="clock">The client's clock.</param>
/// <param name="patience">After so long a silence, in ticks of the clock, a node is given up for now.</param>
/// <param name="leavesSilent">Operations leave a silent node although no other is known to lead: another one brings them to the leader.</param>
internal sealed class Relocation(ConnectionClock clock, long patience, bool leavesSilent)
{
    // A deposed leader answers what it had within a round trip: only one that does not is given up.
    private static readonly TimeSpan s_grace = TimeSpan.FromMilliseconds(100);

    private readonly long _grace = clock.Of(s_grace);
    private long _changedAt;
    private long _lookedAt;

    /// <summary>A leader changed, or a node came.</summary>
    public void OnRoutesChanged(long now) => Volatile.Write(ref _changedAt, now);

    /// <summary>What is to be sent again, at this moment.</summary>
    public List<OperationRef> Take(RouteTable routes, long now)
    {
        List<OperationRef> moved = [];
        long changed = Volatile.Read(ref _changedAt);
        bool isRouteNew = changed != _lookedAt;
        if (isRouteNew && now - changed >= _grace)
        {
            // Whatever went to a wrong node before the change is old enough for this look.
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
                // A call that the new leader forwarded earlier still waits for an answer of the old leader.
                stream.TakeAway(operation => routes.Live(operation.Route) is { } live && (live != stream || operation.IsForwarded), now - _grace, moved);
            }
        }

        return moved;
    }
}
