using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Serializability;

/// <summary>
/// The versions of all lists of a history: who appended what, and in which order. Built once; immutable after that.
/// </summary>
internal sealed class AppendHistory
{
    private readonly Dictionary<(string Key, long Value), AppendTransaction> _writers = [];
    private readonly Dictionary<string, long[]> _orders = new(StringComparer.Ordinal);
    private readonly HashSet<AppendTransaction> _seen = new(ReferenceEqualityComparer.Instance);

    public AppendHistory(IReadOnlyList<AppendTransaction> transactions)
    {
        foreach (AppendTransaction transaction in transactions)
        {
            foreach (AppendStep step in transaction.Steps.Where(static step => step.Appended is not null))
            {
                if (!_writers.TryAdd((step.Key, step.Appended!.Value), transaction))
                {
                    throw new HistoryException(
                        transaction.Line, $"appends {step.Appended} to {step.Key}, which was appended before");
                }
            }
        }

        AppendTransaction[] answered = [.. transactions.Where(static each => each.Outcome == HistoryOutcome.Ok)];
        foreach (AppendTransaction reader in answered)
        {
            foreach (AppendStep step in reader.Steps.Where(static step => step.Read is not null))
            {
                Take(reader, step);
            }
        }

        foreach (AppendTransaction reader in answered)
        {
            foreach (AppendStep step in reader.Steps.Where(static step => step.Read is not null))
            {
                Compare(reader, step);
            }

            foreach ((string key, long[] read) in reader.FirstReads())
            {
                RequireWhole(reader, key, read);
            }
        }

        foreach (AppendTransaction writer in _seen)
        {
            RequireOwnOrder(writer);
        }

        Committed = [.. transactions.Where(each => each.Outcome == HistoryOutcome.Ok || _seen.Contains(each))];
    }

    /// <summary>What contradicts any order of versions.</summary>
    public List<SerializabilityFinding> Findings { get; } = [];

    /// <summary>
    /// Transactions that took effect: those that were answered, and others of which something was read.
    /// </summary>
    public AppendTransaction[] Committed { get; }

    /// <summary>The longest list that was read of each key: a prefix of what it holds in the end.</summary>
    public IReadOnlyDictionary<string, long[]> Orders => _orders;

    /// <summary>Who appended a value.</summary>
    public AppendTransaction WriterOf(string key, long value) => _writers[(key, value)];

    private void Take(AppendTransaction reader, AppendStep step)
    {
        long[] read = step.Read!;
        foreach (long value in read)
        {
            if (!_writers.TryGetValue((step.Key, value), out AppendTransaction? writer))
            {
                Find("unknown value", $"{value} of {step.Key} was read, and nobody appended it", reader);
            }
            else if (writer.Outcome == HistoryOutcome.Fail)
            {
                Find(
                    "aborted read (G1a)", $"{value} of {step.Key} is of a transaction that failed", reader, writer);
            }
            else
            {
                _seen.Add(writer);
            }
        }

        if (read.Distinct().Count() < read.Length)
        {
            Find("duplicate", $"{step.Key} has a value twice", reader);
        }

        if (read.Length > _orders.GetValueOrDefault(step.Key, []).Length)
        {
            _orders[step.Key] = read;
        }
    }

    private void Compare(AppendTransaction reader, AppendStep step)
    {
        long[] read = step.Read!;
        if (!_orders.GetValueOrDefault(step.Key, []).AsSpan().StartsWith(read))
        {
            Find(
                "incompatible order",
                $"{step.Key} was read as lists of which none is the beginning of the other",
                reader);
        }
    }

    /// <summary>What a transaction appends to one list stands there in the order of its steps.</summary>
    private void RequireOwnOrder(AppendTransaction writer)
    {
        foreach (IGrouping<string, AppendStep> steps in writer.Steps
            .Where(static step => step.Appended is not null)
            .GroupBy(static step => step.Key, StringComparer.Ordinal))
        {
            long[] order = _orders.GetValueOrDefault(steps.Key, []);
            int[] places =
            [
                .. steps.Select(step => Array.IndexOf(order, step.Appended!.Value)).Where(static at => at >= 0),
            ];
            if (!places.SequenceEqual(places.Order()))
            {
                Find("reordered appends", $"{steps.Key} has values of one transaction in another order", writer);
            }
        }
    }

    /// <summary>What was read ends with the last append of a transaction, and not in the middle of one.</summary>
    private void RequireWhole(AppendTransaction reader, string key, long[] read)
    {
        if (read is [.., var last]
            && _writers.TryGetValue((key, last), out AppendTransaction? writer)
            && writer.Steps.Last(each => each.Key == key && each.Appended is not null).Appended != last)
        {
            Find(
                "intermediate read (G1b)",
                $"{key} was read in the middle of the transaction that appended {last}",
                reader,
                writer);
        }
    }

    private void Find(string anomaly, string sentence, params AppendTransaction[] transactions) =>
        Findings.Add(new SerializabilityFinding(anomaly, sentence, transactions));
}
