using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>Histories of sequences: what is as promised, and each way in which it is not.</summary>
public sealed class SequenceCheckerTests
{
    [Theory]
    [InlineData("1-1 0..10, 2-4 5..20, 5-5 30..40", true)]
    [InlineData("2-4 0..20, 1-1 5..30", true)]
    [InlineData("1-1 0..10, 1-1 20..30", false)]
    [InlineData("1-3 0..10, 3-4 20..30", false)]
    [InlineData("1-1 0..10, 3-3 20..30", false)]
    [InlineData("1-1 0..10, ?1 12..15, 3-3 20..30", true)]
    [InlineData("1-1 0..10, ?1 12..15, 4-4 20..30", false)]
    [InlineData("1-1 0..10, x5 12..15, 3-3 20..30", false)]
    [InlineData("2-2 0..10, 1-1 20..30", false)]
    [InlineData("2-2 0..10, 1-1 10..30", true)]
    [InlineData("7-9 0..10, 10-10 20..30", true)]
    [InlineData("1-2 0..10 key, 1-2 20..30 key, 3-3 40..50", true)]
    [InlineData("1-2 0..10 key, 3-4 20..30 key", false)]
    [InlineData("3-3 0..10 fast, 9-9 20..30 fast, 1-1 40..50 fast", true)]
    [InlineData("3-3 0..10 fast, 3-3 20..30 fast", false)]
    [InlineData("9223372036854775806-9223372036854775807 0..10, 9223372036854775805-9223372036854775805 0..20", true)]
    public void A_history_is_judged(string history, bool isGood)
    {
        HistoryOperation[] operations = [.. history.Split(", ").Select(Read)];
        HistoryVerdict verdict = LinearizabilityChecker.Check(operations);
        Assert.Equal(isGood ? Verdict.Linearizable : Verdict.NotLinearizable, verdict.Verdict);
        Assert.Equal(isGood, verdict.Findings().Length == 0);

        // As a file it means the same.
        using StringWriter lines = new();
        HistoryWriter writer = new(lines);
        foreach (HistoryOperation operation in operations)
        {
            writer.Write(operation);
        }

        using StringReader source = new(lines.ToString());
        Assert.Equal(verdict.Verdict, LinearizabilityChecker.Check(HistoryReader.Read(source)).Verdict);
    }

    [Fact]
    public void The_first_value_is_checked_where_it_is_known() =>
        Assert.Equal(
            Verdict.NotLinearizable, SequenceChecker.Check("s", [Read("2-2 0..10", 0)], firstValue: 1).Verdict);

    [Fact]
    public void A_name_is_a_key_or_a_sequence()
    {
        HistoryOperation get =
            new()
            {
                Process = 9,
                Key = "s",
                Kind = OperationKind.Get,
                CallNs = 100,
                ReturnNs = 200,
                Outcome = HistoryOutcome.Ok,
            };
        Assert.Throws<HistoryException>(() => LinearizabilityChecker.Check([Read("1-1 0..10", 0), get]));
        Assert.Throws<HistoryException>(
            () => LinearizabilityChecker.Check([Read("1-1 0..10", 0) with { Arguments = new OperationArguments() }]));
    }

    private static HistoryOperation Read(string text, int process)
    {
        string[] parts = text.Split(' ');
        long[] times = [.. parts[1].Split("..").Select(time => long.Parse(time, CultureInfo.InvariantCulture))];
        long[] values = parts[0][0] is '?' or 'x'
            ? []
            : [.. parts[0].Split('-').Select(value => long.Parse(value, CultureInfo.InvariantCulture))];
        return new HistoryOperation
        {
            Process = process,
            Key = "s",
            Kind = OperationKind.Next,
            Arguments = new OperationArguments
            {
                Count = values.Length > 0
                    ? values[1] - values[0] + 1
                    : long.Parse(parts[0].AsSpan(1), CultureInfo.InvariantCulture),
                IdempotencyKey = parts.Contains("key") ? "key" : null,
                IsFast = parts.Contains("fast"),
            },
            CallNs = times[0],
            ReturnNs = times[1],
            Outcome =
                parts[0][0] switch
                {
                    '?' => HistoryOutcome.Unknown,
                    'x' => HistoryOutcome.Fail,
                    _ => HistoryOutcome.Ok,
                },
            Result = values.Length > 0
                ? new OperationResult { Affirmed = true, First = values[0], Last = values[1] }
                : OperationResult.Unconstrained,
        };
    }
}
