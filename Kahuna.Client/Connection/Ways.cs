namespace Kahuna.Client.Connection;

/// <summary>Chooses the stream that an attempt goes out on. Owned by the <see cref="ClusterConnection"/>; any thread.</summary>
/// <param name="links">The links and the map.</param>
/// <param name="asksToForward">While the leader cannot be reached, another node is asked to bring operations there.</param>
/// <param name="patience">After so long a silence, in ticks of the clock, a node is given up for now.</param>
internal sealed class Ways(ClusterLinks links, bool asksToForward, long patience)
{
    private long _lastProbe;

    /// <summary>
    /// The leader's stream, or that of any node while there is no leader to send to; null: none. Settles what the attempt says of itself: route, epoch, and
    /// term, and whether it is to be forwarded. The caller holds the operation.
    /// </summary>
    public NodeStream? Choose(Operation operation, long now)
    {
        RouteTable routes = links.Routes;
        operation.Route = operation.FixedPartition is { } partition ? routes.Map.RouteOf(partition, operation.Durability) : routes.Map.RouteOf(operation.Key, operation.Durability);
        operation.IsForwarded = false;
        PartitionRoute known = operation.Route < 0 ? default : routes.Map[operation.Route];
        (operation.Term, operation.Epoch) = (known.Term, known.Epoch);
        if (operation.HintedNodeId != 0)
        {
            NodeStream? hinted = routes.Link(operation.HintedNodeId)?.Ready;
            operation.HintedNodeId = 0;
            if (hinted is { IsSuspect: false })
            {
                return hinted;
            }
        }

        if (routes.Map.Partitions == 0)
        {
            return null;
        }

        NodeLink? link = routes.Leader(operation.Route);
        NodeStream? leader = link?.Ready;
        if (leader is null)
        {
            link?.Want();
        }

        if (leader is not null && !(leader.IsSuspect && (asksToForward || IsProbeDue(now))))
        {
            return leader;
        }

        NodeStream? other = routes.AnyReady(operation.Attempts, leader);
        if (other is null or { IsSuspect: true })
        {
            return leader ?? other;
        }

        // A leader that is just gone has a successor soon, and every node tells of it. One that stays out of reach may be so for this client only.
        operation.IsForwarded = asksToForward && link is not null && (leader is not null || now - link.UnreadySince > patience);
        return other;
    }

    /// <summary>While a leader is silent, now and then one operation goes to another node, whose refusal says who leads.</summary>
    private bool IsProbeDue(long now)
    {
        long last = Volatile.Read(ref _lastProbe);
        return now - last > patience / 4 && Interlocked.CompareExchange(ref _lastProbe, now, last) == last;
    }
}
