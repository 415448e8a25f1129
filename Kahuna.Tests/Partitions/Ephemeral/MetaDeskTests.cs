using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;

namespace Kahuna.Tests.Partitions.Ephemeral;

/// <summary>A node that was started for another cluster than the recorded one does not go on.</summary>
public sealed class MetaDeskTests
{
    [Theory]
    [InlineData(2, new ushort[] { 1, 2, 3 }, null)]
    [InlineData(2, new ushort[] { 3, 1, 2 }, null)]
    [InlineData(2, new ushort[] { 1 }, "The cluster has recorded that its nodes are 1, with 2 partition(s), but this node is started for the nodes 1, 2, 3, with 2 partition(s). Correct --peers or --partitions.")]
    [InlineData(2, new ushort[] { 1, 2, 3, 4, 5 }, "its nodes are 1, 2, 3, 4, 5")]
    [InlineData(4, new ushort[] { 1, 2, 3 }, "its nodes are 1, 2, 3, with 4 partition(s)")]
    public void The_recorded_configuration_is_compared(int partitions, ushort[] voters, string? words)
    {
        ModelCluster cluster = new(3, partitions: 2);
        LoopOptions options = new() { Self = new NodeId(1), Voters = cluster.Ids, PreferredLeader = static _ => new NodeId(1), Seed = 1, HasEphemeral = true };
        MetaBoard board = new();
        MetaDesk desk = new(options, cluster[1].Ports!, board);
        StateMachine state = new(options.StateLimits);
        desk.Publish(state);
        Assert.Empty(cluster[1].Failures);

        Apply(state, new MetaCommand(CommandKind.Configure) { Number = (ulong)partitions, Voters = [.. voters.Select(id => new NodeId(id))] });
        desk.Changed();
        desk.Publish(state);
        if (words is null)
        {
            Assert.Empty(cluster[1].Failures);
        }
        else
        {
            Assert.Contains(words, Assert.IsType<StorageException>(Assert.Single(cluster[1].Failures)).Message, StringComparison.Ordinal);
        }
    }

    private static void Apply(StateMachine state, MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        state.BeginEntry(1);
        state.Meta.Apply(in decoded, 1);
        bytes.Return();
    }
}
