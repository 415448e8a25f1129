using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// A history of one lock that is changed step by step, so that it may not be as promised any more. Owned by a test.
/// </summary>
internal sealed record Spoilt(List<HistoryOperation> Holdings, List<HistoryOperation> Writes)
{
    /// <summary>A copy of what was made.</summary>
    public static Spoilt Of((List<HistoryOperation> Holdings, List<HistoryOperation> Writes) made) =>
        new([.. made.Holdings], [.. made.Writes]);

    public void SetToken(int at, long token) =>
        Holdings[at] = Holdings[at] with { Result = Holdings[at].Result with { Token = token } };

    /// <summary>Two different holdings, by their places, of all that fit; false when there are none.</summary>
    public bool TryDrawPair(
        Random random, Func<HistoryOperation, HistoryOperation, bool> fits, out int one, out int other)
    {
        int[] granted = Granted();
        (int One, int Other)[] pairs =
        [
            .. granted.SelectMany(
                a => granted.Where(b => a != b && fits(Holdings[a], Holdings[b])).Select(b => (a, b))),
        ];
        (one, other) = pairs.Length == 0 ? (0, 0) : pairs[random.Next(pairs.Length)];
        return pairs.Length > 0;
    }

    /// <summary>One small change of a holding or a write, which may be as good as what was before.</summary>
    public void ChangeAny(Random random)
    {
        int[] granted = Granted();
        if (random.Next(4) == 0 && Writes.Count > 0)
        {
            int write = random.Next(Writes.Count);
            Writes[write] = Writes[write] with
            {
                CallNs = Writes[write].CallNs + random.Next(30),
                ReturnNs = Writes[write].ReturnNs + 30,
                Outcome = HistoryOutcome.Ok,
            };
        }
        else if (granted.Length > 0)
        {
            int at = granted[random.Next(granted.Length)];
            Holdings[at] = Change(random, Holdings[at], Holdings[granted[random.Next(granted.Length)]]);
        }
    }

    /// <summary>As lines, for the message of a failed test.</summary>
    public string Text()
    {
        using StringWriter target = new(CultureInfo.InvariantCulture);
        HistoryWriter lines = new(target);
        foreach (HistoryOperation operation in Holdings.Concat(Writes))
        {
            lines.Write(operation);
        }

        return target.ToString();
    }

    private int[] Granted() =>
        [.. Enumerable.Range(0, Holdings.Count).Where(i => Holdings[i].Outcome == HistoryOutcome.Ok)];

    private static HistoryOperation Change(Random random, HistoryOperation holding, HistoryOperation other)
    {
        long returnNs = holding.ReturnNs!.Value;
        switch (random.Next(6))
        {
            case 0:
                return holding with
                {
                    Result =
                        holding.Result with { Token = Math.Max(1, other.Result.Token!.Value + random.Next(-1, 2)) },
                };
            case 1:
                return holding with { Result = holding.Result with { UntilNs = returnNs + random.Next(30) } };
            case 2:
                return holding with { CallNs = Math.Min(returnNs, other.ReturnNs!.Value + random.Next(-1, 2)) };
            case 3:
                long toldNs = Math.Max(holding.CallNs, (other.Result.UntilNs ?? 20) + random.Next(-1, 2));
                return holding with
                {
                    ReturnNs = toldNs,
                    Result = holding.Result with { UntilNs = Math.Max(toldNs, holding.Result.UntilNs ?? 0) },
                };
            case 4:
                return holding with
                {
                    Arguments = new OperationArguments { Mode = LockMode.Permit, Permits = random.Next(1, 4) },
                };
            default:
                return holding with
                {
                    Arguments = new OperationArguments
                    {
                        Mode = random.Next(2) == 0 ? LockMode.Exclusive : LockMode.Shared,
                    },
                };
        }
    }
}
