using System.Globalization;
using System.Text;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>Parts of transactions take a bounded part of a partition's time, however many are sent.</summary>
public sealed class PreparePaceTests
{
    private const int Items = 1_000;

    private static readonly NodeId s_one = new(1);

    private readonly ModelCluster _cluster = new(1);

    [Fact]
    public void A_leader_takes_a_few_large_parts_at_once_and_refuses_the_others()
    {
        _cluster.Elect();
        ModelSink sink = new();
        _cluster.Send(s_one, sink, [.. Enumerable.Range(0, 50).Select(static i => ((uint)i, Part(i)))]);
        _cluster.Settle();
        int taken = sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Applied);
        int busy = sink.Replies.Values.Count(static reply => reply.Status == OutcomeStatus.Busy);
        Assert.InRange(taken, 1, (PreparePace.ItemsAtOnce / Items) + 1);
        Assert.Equal(50, taken + busy);
    }

    private static byte[] Part(int number)
    {
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(body, new TransactionId(1, (ulong)number), 1_000, PrepareFlags.None, "z"u8, 0);
        TransactionBody.WriteHeader(body, 0, Items, 0);
        for (int i = 0; i < Items; i++)
        {
            CommandList.Append(body, new Command
            {
                Kind = CommandKind.Delete,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(string.Create(CultureInfo.InvariantCulture, $"{number}/{i}")),
            });
        }

        ByteBuffer bytes = ByteBuffer.Rent();
        new Command
        {
            Kind = CommandKind.TransactionPrepare,
            Durability = Durability.Persistent,
            Key = Encoding.UTF8.GetBytes(string.Create(CultureInfo.InvariantCulture, $"{number}/0")),
            Value = body.Written,
        }.Write(bytes);
        return bytes.Written.ToArray();
    }
}
