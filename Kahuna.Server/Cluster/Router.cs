using System.Text;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
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

    /// <summary>A batch of operations that come in now.</summary>
    public ClientBatch Begin(ByteBuffer buffer, ReplySink sink) =>
        ClientBatch.Rent(buffer, sink, loops.Now, loops.Stamp);

    /// <inheritdoc cref="LoopSet.Refusals"/>
    public Refusals Refusals => loops.Refusals;

    public ClusterView View => view;

    /// <summary>The index of the command's group (<see cref="GroupLayout"/>).</summary>
    public ushort GroupIndexOf(scoped in Command command) =>
        (ushort)loops.Layout.IndexOf(PartitionOf(in command), command.Durability == Durability.Ephemeral);

    /// <summary>The index of the group of a key.</summary>
    public int GroupIndexOf(Durability durability, byte[] key) =>
        loops.Layout.IndexOf(view.Slots.PartitionOf(key), durability == Durability.Ephemeral);

    /// <summary>
    /// Why the keys of the command's items cannot be written together: they lie in several partitions. Null: they can.
    /// </summary>
    public string? RefuseSpread(scoped in Command command) =>
        CommandKinds.Has(command.Kind, CommandTraits.HasItems) ? RefuseSpreadOfItems(in command) : null;

    /// <summary>
    /// The keys of the command's items lie in several partitions, or are of both durabilities, or a range of them is
    /// not divided among the partitions.
    /// </summary>
    public bool IsSpread(scoped in Command command)
    {
        int partition = PartitionOf(in command);
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (RangeCondition.Is(in item)
                || item.Durability != command.Durability
                || PartitionOf(in item) != partition)
            {
                return true;
            }
        }

        return false;
    }

    private string? RefuseSpreadOfItems(scoped in Command command)
    {
        int partition = PartitionOf(in command);
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (RangeCondition.Is(in item))
            {
                if (RefuseRange(new RangeCondition(in item), partition) is { } refusal)
                {
                    return refusal;
                }
            }
            else if (PartitionOf(in item) != partition)
            {
                return $"\"{Encoding.UTF8.GetString(command.Key)}\" and \"{Encoding.UTF8.GetString(item.Key)}\" "
                    + TransactionCheck.DifferentPartitions
                    + "; one command takes keys of one partition. Keys of one bucket, which is the part before the "
                    + "last /, always lie in one";
            }
        }

        return null;
    }

    /// <summary>
    /// Why a range cannot be looked at in this partition; null: it can. By an older map of slots it may have been
    /// divided among too few partitions.
    /// </summary>
    private string? RefuseRange(scoped in RangeCondition range, int partition) =>
        range.Partition == partition && range.MapVersion >= view.Slots.Version
            ? null
            : $"a range of partition {range.Partition}, by version {range.MapVersion} of the map of slots, and "
                + $"\"{Encoding.UTF8.GetString(range.Start)}\" by the map of version {view.Slots.Version} "
                + TransactionCheck.DifferentPartitions
                + "; divide the range by the newer map";

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
