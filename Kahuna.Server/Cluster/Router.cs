using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Routing;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Cluster;

/// <summary>Hop 4: key and durability → group → the loop that owns it here. Any thread.</summary>
internal sealed class Router(LoopSet loops, ClusterView view)
{
    public long NowMs => loops.NowMs;

    public int Loops => loops.Loops.Length;

    public ClusterView View => view;

    /// <summary>The slot of the group that a command is for (<see cref="GroupLayout"/>).</summary>
    public ushort SlotOf(scoped in Command command) =>
        (ushort)loops.Layout.SlotOf(PartitionOf(in command), command.Durability == CommandDurability.Ephemeral);

    /// <summary>A page of a list is of the partition that it names, counted anew from the last one on.</summary>
    private int PartitionOf(scoped in Command command) =>
        command.Kind is CommandKind.SequenceList or CommandKind.LockList ? (int)(command.Number % view.Partitions) : KeyRouting.Partition(command.Key, view.Partitions);

    /// <summary>Hands the batch, which it takes over, to the loops of its partitions. Every operation gets exactly one reply; NotLeader names whom to ask instead.</summary>
    public void Route(ClientBatch batch) => loops.Post(batch);
}
