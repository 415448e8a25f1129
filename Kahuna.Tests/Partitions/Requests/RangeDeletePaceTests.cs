using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>Deletes of ranges take a bounded part of a partition's time, however many are asked for.</summary>
public sealed class RangeDeletePaceTests
{
    private static readonly NodeId s_one = new(1);

    private readonly ModelCluster _cluster = new(1);

    public RangeDeletePaceTests() => _cluster.Elect();

    [Fact]
    public void A_leader_takes_a_few_steps_at_once_and_refuses_the_others()
    {
        for (int round = 0; round < 3; round++)
        {
            ModelSink sink = new();
            _cluster.Send(s_one, sink, [.. Enumerable.Range(0, 1_000).Select(static i => ((uint)i, Step()))]);
            _cluster.Settle();
            Assert.Equal(
                RangeDeletePace.StepsAtOnce,
                sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Applied));
            Assert.Equal(
                1_000 - RangeDeletePace.StepsAtOnce,
                sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Busy));
            _cluster.Tick();
        }
    }

    [Fact]
    public void A_step_is_left_for_each_millisecond()
    {
        RangeDeletePace pace = new();
        NodeTime now = new(1_000);
        int taken = 0;
        for (int i = 0; i < 10_000; i++)
        {
            taken += pace.TryTake(now) ? 1 : 0;
            now += i % 10 == 0 ? 1 : 0;
        }

        Assert.InRange(taken, 1_000 / RangeDeletePace.MsPerStep, (1_000 / RangeDeletePace.MsPerStep) + 10);
    }

    private static byte[] Step()
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        new Command
        {
            Kind = CommandKind.KeyRangeDelete,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number | CommandFlags.AtRevision,
            Key = "x"u8,
            AtRevision = RangeRequest.Options(100, RangeFlags.None),
        }.Write(bytes);
        byte[] copy = bytes.Written.ToArray();
        bytes.Return();
        return copy;
    }
}
