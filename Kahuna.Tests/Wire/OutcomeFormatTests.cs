using System.Globalization;
using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Wire;

/// <summary>The encoding of outcomes, and the numbers of their statuses.</summary>
public sealed class OutcomeFormatTests
{
    [Fact]
    public void The_encoding_is_the_published_one()
    {
        StringBuilder text = new();
        Append(text, "applied: revision 1", new Outcome(OutcomeStatus.Applied, 1));
        Append(
            text,
            "applied: revision 8, previous revision 7, previous value old",
            new Outcome(OutcomeStatus.Applied, 8, 7) { HasValue = true, Value = "old"u8 });
        Append(
            text,
            "found: revision 258, expires in 1,000 ms, value hello",
            new Outcome(OutcomeStatus.Found, 258, 1000) { HasValue = true, Value = "hello"u8 });
        Append(
            text,
            "found: revision 3, never expires, null value",
            new Outcome(OutcomeStatus.Found, 3, -1) { HasValue = true, ValueIsNull = true });
        Append(text, "found: revision 3, never expires, empty value", new Outcome(OutcomeStatus.Found, 3, -1)
        {
            HasValue = true,
        });
        Append(text, "found: answer to exists, revision 3", new Outcome(OutcomeStatus.Found, 3, -1));
        Append(text, "not found", new Outcome(OutcomeStatus.NotFound));
        Append(text, "condition failed: current revision 5", new Outcome(OutcomeStatus.ConditionFailed, 5, 5));
        Append(text, "applied: increment to -2 at revision 4", new Outcome(OutcomeStatus.Applied, 4, -2));
        Append(text, "not leader: the leader is node 3", new Outcome(OutcomeStatus.NotLeader, 0, 3));
        ByteBuffer error = ByteBuffer.Rent();
        Outcome.WriteError(error, OutcomeStatus.InvalidArgument, "key is empty; it must have 1 to 1,024 bytes");
        GoldenFile.AppendDump(text, "invalid argument, with its sentence", error.Written);
        error.Return();
        GoldenFile.Check("Wire/outcomes.txt", text.ToString());
    }

    [Fact]
    public void Numbers_of_statuses_kinds_and_flags_are_fixed()
    {
        StringBuilder text = new();
        foreach (Type type in new[]
        {
            typeof(OutcomeStatus),
            typeof(Kahuna.Wire.Commands.CommandKind),
            typeof(Durability),
            typeof(Kahuna.Wire.Commands.CommandFlags), typeof(Kahuna.Wire.Frames.FrameKind),
        })
        {
            foreach (object value in Enum.GetValues(type))
            {
                text.Append(
                    CultureInfo.InvariantCulture,
                    $"{type.Name}.{value} = {Convert.ToInt32(value, CultureInfo.InvariantCulture)}\n");
            }
        }

        GoldenFile.Check("Wire/numbers.txt", text.ToString());
    }

    [Fact]
    public void Random_outcomes_survive_the_round_trip()
    {
        Random random = new(21);
        byte[] bytes = new byte[2000];
        for (int i = 0; i < 5000; i++)
        {
            random.NextBytes(bytes);
            Outcome outcome = new((OutcomeStatus)random.Next(256), random.NextInt64(), -random.NextInt64())
            {
                HasValue = random.Next(2) == 0,
                ValueIsNull = random.Next(4) == 0,
            };
            outcome.Value = outcome.HasValue && !outcome.ValueIsNull
                ? bytes.AsSpan(0, random.Next(bytes.Length))
                : default;
            ByteBuffer buffer = ByteBuffer.Rent();
            outcome.Write(buffer);
            Assert.True(Outcome.TryRead(buffer.Written, out Outcome read));
            Assert.Equal(
                (outcome.Status, outcome.HasValue, outcome.ValueIsNull, outcome.Revision, outcome.Number),
                (read.Status, read.HasValue, read.ValueIsNull, read.Revision, read.Number));
            Assert.True(outcome.Value.SequenceEqual(read.Value));
            Assert.False(Outcome.TryRead(buffer.Written[..^1], out _));
            buffer.Take(1);
            Assert.False(Outcome.TryRead(buffer.Written, out _));
            buffer.Return();
        }
    }

    [Fact]
    public void Garbage_never_throws()
    {
        Random random = new(22);
        byte[] bytes = new byte[64];
        for (int i = 0; i < 100_000; i++)
        {
            random.NextBytes(bytes);
            int length = random.Next(bytes.Length);
            if (random.Next(2) == 0)
            {
                BitConverter.TryWriteBytes(bytes.AsSpan(4), length - Outcome.HeaderBytes);
            }

            if (Outcome.TryRead(bytes.AsSpan(0, length), out Outcome outcome))
            {
                int point = outcome.Point is null ? 0 : ChangePoint.Bytes;
                Assert.Equal(length, Outcome.HeaderBytes + outcome.Value.Length + point);
            }
        }
    }

    private static void Append(StringBuilder text, string name, scoped in Outcome outcome)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        outcome.Write(buffer);
        GoldenFile.AppendDump(text, name, buffer.Written);
        buffer.Return();
    }
}
