using System.Globalization;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>Scripts take a bounded part of a partition's time, however many are sent.</summary>
public sealed class ScriptPaceTests
{
    private static readonly NodeId s_one = new(1);

    private readonly ModelCluster _cluster = new(1);

    public ScriptPaceTests() => _cluster.Elect();

    [Fact]
    public void A_leader_takes_a_few_scripts_that_it_does_not_know_and_refuses_the_others()
    {
        for (int round = 0; round < 3; round++)
        {
            int first = 1_000 * round;
            (int applied, int busy) = Send(first, first + 1_000);
            int most = (ScriptPace.StepsAtOnce / ScriptRunner.Budget.Steps) + 1;
            Assert.InRange(applied, 1, most);
            Assert.Equal(1_000, applied + busy);
            for (int i = 0; i < 30; i++)
            {
                _cluster.Tick();
            }
        }
    }

    [Fact]
    public void A_script_that_it_knows_costs_what_it_took()
    {
        Assert.Equal((1, 0), Send(5, 6));
        _cluster.Tick();
        ModelSink sink = new();
        byte[] known = Script(5);
        _cluster.Send(s_one, sink, [.. Enumerable.Range(0, 1_000).Select(i => ((uint)i, known))]);
        _cluster.Settle();
        Assert.Equal(1_000, sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Applied));
    }

    [Fact]
    public void A_long_text_that_it_does_not_know_makes_others_wait_longer()
    {
        ModelSink sink = new();
        string comment = new('x', ScriptBody.TextBytesMax - 100);
        _cluster.Send(s_one, sink, [(1, Script($"set `x` 1 # {comment}")), (2, Script("set `x` 2"))]);
        _cluster.Settle();
        Assert.Equal(
            [OutcomeStatus.Applied, OutcomeStatus.Busy],
            sink.Replies.OrderBy(static reply => reply.Key).Select(static reply => reply.Value.Status));
    }

    [Fact]
    public void A_millisecond_gives_some_steps()
    {
        ScriptPace pace = new();
        NodeTime now = new(1_000);
        long taken = 0;
        for (int i = 0; i < 10_000; i++)
        {
            taken += pace.TryTake(now, 1_000) ? 1_000 : 0;
            now += i % 10 == 0 ? 1 : 0;
        }

        Assert.InRange(taken, 999 * ScriptPace.StepsPerMs, (1_001 * ScriptPace.StepsPerMs) + ScriptPace.StepsAtOnce);
    }

    /// <summary>Sends scripts with different texts.</summary>
    private (int Applied, int Busy) Send(int from, int to)
    {
        ModelSink sink = new();
        _cluster.Send(s_one, sink, [.. Enumerable.Range(from, to - from).Select(static i => ((uint)i, Script(i)))]);
        _cluster.Settle();
        return (
            sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Applied),
            sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Busy));
    }

    private static byte[] Script(int number) =>
        Script(string.Create(CultureInfo.InvariantCulture, $"set `x` {number}"));

    private static byte[] Script(string text)
    {
        ByteBuffer body = ByteBuffer.Rent();
        Assert.Null(ScriptBody.Write(body, text, []));
        ByteBuffer bytes = ByteBuffer.Rent();
        new Command
        {
            Kind = CommandKind.Script,
            Durability = Durability.Persistent,
            Key = "x"u8,
            Value = body.Written,
        }.Write(bytes);
        return bytes.Written.ToArray();
    }
}
