using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Cluster;

/// <summary>
/// Hop 4: key and durability → slot → group → the loop that owns it, by the newest slot map that the node knows. Any
/// thread.
/// </summary>
internal sealed class Router(LoopSet loops, ClusterView view)
{
    public NodeTime Now => loops.Now;

    public int Loops => loops.Loops.Length;

    public ClusterView View => view;

    /// <summary>The index of the command's group (<see cref="GroupLayout"/>).</summary>
    public ushort GroupIndexOf(scoped in Command command) =>
        (ushort)loops.Layout.IndexOf(PartitionOf(in command), command.Durability == Durability.Ephemeral);

    /// <summary>A list names its partition; a number past the last one wraps around.</summary>
    private int PartitionOf(scoped in Command command) =>
        CommandKinds.Has(command.Kind, CommandTraits.IsList)
            ? (int)(new PageRequest(in command).Partition % view.Partitions)
            : view.Slots.PartitionOf(command.Key);

    /// <summary>
    /// Passes the batch to the loops of its partitions, which take ownership. Every operation gets exactly one reply;
    /// NotLeader names the leader.
    /// </summary>
    public void Route(ClientBatch batch) => loops.Post(batch);
}
