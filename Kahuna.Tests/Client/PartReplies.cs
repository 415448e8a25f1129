using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Client;

/// <summary>
/// What a <see cref="FakeNode"/> answers to the steps of a transaction over several partitions, each of which has one
/// write. Stateless.
/// </summary>
internal static class PartReplies
{
    /// <summary>The answer to a step that succeeds.</summary>
    /// <param name="kind">The step.</param>
    /// <param name="number">The decision that it asks for or carries out.</param>
    public static FakeReply Usual(CommandKind kind, long number) => kind switch
    {
        CommandKind.TransactionPrepare => new FakeReply(OutcomeStatus.Applied, Value: Vote()),
        CommandKind.TransactionDecide => new FakeReply(
            OutcomeStatus.Applied,
            0,
            number,
            number == (long)TransactionDecision.Abort ? null : Outcomes(new Outcome(OutcomeStatus.Applied, 1))),
        CommandKind.TransactionFinish => new FakeReply(
            OutcomeStatus.Applied, Value: Outcomes(new Outcome(OutcomeStatus.Applied, 1))),
        _ => new FakeReply(OutcomeStatus.Applied),
    };

    /// <summary>A list with one outcome.</summary>
    public static byte[] Outcomes(Outcome outcome)
    {
        ByteBuffer list = ByteBuffer.Rent();
        int at = OutcomeList.Begin(list);
        outcome.Write(list);
        OutcomeList.End(list, at);
        byte[] bytes = list.Written.ToArray();
        list.Return();
        return bytes;
    }

    /// <summary>A key in a partition of two.</summary>
    public static string KeyIn(int partition)
    {
        SlotMap slots = SlotMap.Initial(2);
        return Enumerable.Range(0, 100)
            .Select(static i => $"{i}/x")
            .First(key => slots.PartitionOf(Encoding.UTF8.GetBytes(key)) == partition);
    }

    private static byte[] Vote()
    {
        byte[] bytes = new byte[PrepareVote.Bytes];
        ListForecast good = new(OutcomeStatus.Applied, 0, 0);
        new PrepareVote(true, good, good).Write(bytes);
        return bytes;
    }
}
