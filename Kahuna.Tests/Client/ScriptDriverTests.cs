using System.Text;
using Kahuna.Client;
using Kahuna.Client.Scripts;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Client;

/// <summary>What a client says of a script over several partitions that did not come to its end.</summary>
public sealed class ScriptDriverTests
{
    /// <summary>
    /// What was read is looked at again by a transaction. Its outcome says nothing of a script that writes nothing.
    /// </summary>
    [Theory]
    [InlineData("throw 'no'")]
    [InlineData("return a")]
    public async Task A_script_that_writes_nothing_is_never_an_unknown_outcome(string last)
    {
        int decisions = 0;
        FakeCluster cluster = new(partitions: 2);
        cluster[1].Answer = request =>
        {
            decisions += request.Kind == CommandKind.TransactionDecide ? 1 : 0;
            return request.Kind switch
            {
                CommandKind.GetMany => new FakeReply(OutcomeStatus.Found, Value: Absent()),
                CommandKind.TransactionPrepare => new FakeReply(OutcomeStatus.Applied, Value: Vote()),
                _ => null,
            };
        };
        await using KahunaClient client = await cluster.ConnectedAsync();
        using CancellationTokenSource end = new();
        ScriptParameters keys = new() { ["a"] = KeyIn(0), ["b"] = KeyIn(1) };
        Task<ScriptResult> run = client.Scripts.RunAsync(
            $"let a = get @a let b = get @b {last}", keys, ct: end.Token);
        await Wait.UntilAsync(() => Volatile.Read(ref decisions) == 1);
        await end.CancelAsync();
        KahunaCanceledException cut = await Assert.ThrowsAsync<KahunaCanceledException>(() => run);
        Assert.Equal((OperationOutcome.DidNotHappen, null), (cut.Outcome, cut.TransactionId));
    }

    private static byte[] Vote()
    {
        byte[] bytes = new byte[PrepareVote.Bytes];
        ListForecast good = new(OutcomeStatus.Applied, 0, 0);
        new PrepareVote(true, good, good).Write(bytes);
        return bytes;
    }

    private static byte[] Absent()
    {
        ByteBuffer list = ByteBuffer.Rent();
        int at = OutcomeList.Begin(list);
        new Outcome(OutcomeStatus.NotFound).Write(list);
        OutcomeList.End(list, at);
        byte[] bytes = list.Written.ToArray();
        list.Return();
        return bytes;
    }

    private static string KeyIn(int partition)
    {
        SlotMap slots = SlotMap.Initial(2);
        return Enumerable.Range(0, 100)
            .Select(static i => $"{i}/x")
            .First(key => slots.PartitionOf(Encoding.UTF8.GetBytes(key)) == partition);
    }
}
