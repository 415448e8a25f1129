using System.Globalization;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Tests.State;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>Ranges of transactions take a bounded part of a partition's time, however many are sent.</summary>
public sealed class RangeRowPaceTests
{
    private const int Keys = 2_000;

    private static readonly NodeId s_one = new(1);

    private readonly ModelCluster _cluster = new(1);

    [Fact]
    public void A_leader_looks_at_a_bounded_number_of_rows_at_once_and_refuses_the_others()
    {
        _cluster.Elect();
        ModelSink sink = new();
        _cluster.Send(s_one, sink, [.. Enumerable.Range(0, Keys).Select(static i =>
            ((uint)i, Write(string.Create(CultureInfo.InvariantCulture, $"q/{i:d5}"), "1").Encode()))]);
        _cluster.Settle();
        Assert.All(sink.Replies.Values, static reply => Assert.Equal(OutcomeStatus.Applied, reply.Status));
        ModelSink looks = new();
        TestCommand look = Transaction("x", [Has(Keys, "q/", "q0")], [new TestCommand(CommandKind.Exists, "x")]);
        _cluster.Send(s_one, looks, [.. Enumerable.Range(0, 50).Select(i => ((uint)i, look.Encode()))]);
        _cluster.Settle();
        int taken = looks.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Applied);
        int busy = looks.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Busy);
        Assert.InRange(taken, 1, (RangeRowPace.RowsAtOnce / Keys) + 1);
        Assert.Equal(50, taken + busy);
    }
}
