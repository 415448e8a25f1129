using System.Globalization;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Serializability;

/// <summary>
/// Checks list-append histories for strict serializability. What lists were read shows the order of their versions;
/// from that follow the transactions that must come before others, and a cycle among them is a contradiction. The
/// verdict is exact: without a finding there is an order that explains every answer. Stateless; any thread.
/// </summary>
/// <remarks>
/// The idea of the list-append workload and the names of the anomalies are those of Kingsbury and Alvaro, "Elle:
/// Inferring Isolation Anomalies from Experimental Observations" (2020), after Adya's thesis (1999).
/// </remarks>
internal static class SerializabilityChecker
{
    /// <summary>What is wrong; empty when the history is strictly serializable.</summary>
    public static List<SerializabilityFinding> Check(IReadOnlyList<AppendTransaction> transactions)
    {
        List<SerializabilityFinding> findings = [];
        AppendHistory history = new(transactions);
        foreach (AppendTransaction transaction in transactions)
        {
            if (transaction.Outcome == HistoryOutcome.Ok && CheckInternal(transaction) is { } step)
            {
                findings.Add(new SerializabilityFinding(
                    "internal", $"{step.Key} is not what the transaction itself has read and appended", [transaction]));
            }
        }

        findings.AddRange(history.Findings);
        if (findings.Count > 0)
        {
            // Which version came when is not known for sure, so that a graph would say nothing.
            return findings;
        }

        if (new DependencyGraph(history).ShortestCycle() is { } cycle)
        {
            findings.Add(cycle);
        }

        return findings;
    }

    /// <summary>The first read that contradicts the transaction's own steps; null: there is none.</summary>
    private static AppendStep? CheckInternal(AppendTransaction transaction)
    {
        Dictionary<string, (List<long> Values, bool IsWhole)> seen = new(StringComparer.Ordinal);
        foreach (AppendStep step in transaction.Steps)
        {
            (List<long> values, bool isWhole) = seen.GetValueOrDefault(step.Key, ([], false));
            if (step.Appended is { } value)
            {
                values.Add(value);
                seen[step.Key] = (values, isWhole);
            }
            else if (step.Read is { } read)
            {
                bool fits = isWhole
                    ? read.AsSpan().SequenceEqual(values.ToArray())
                    : read.AsSpan().EndsWith(values.ToArray());
                if (!fits)
                {
                    return step;
                }

                seen[step.Key] = ([.. read], true);
            }
        }

        return null;
    }
}

/// <summary>What is wrong with a history. Immutable.</summary>
/// <param name="Anomaly">Its name.</param>
/// <param name="Sentence">What it is.</param>
/// <param name="Transactions">The transactions that show it.</param>
internal sealed record SerializabilityFinding(
    string Anomaly, string Sentence, IReadOnlyList<AppendTransaction> Transactions)
{
    /// <inheritdoc/>
    public override string ToString()
    {
        IEnumerable<string> lines = Transactions.Select(
            static each => string.Create(CultureInfo.InvariantCulture, $"  line {each.Line}: {Text(each)}"));
        return $"{Anomaly}: {Sentence}\n{string.Join('\n', lines)}";
    }

    /// <summary>A transaction in one line.</summary>
    public static string Text(AppendTransaction transaction)
    {
        IEnumerable<string> steps = transaction.Steps.Select(static step => step.Appended is { } value
            ? string.Create(CultureInfo.InvariantCulture, $"append {step.Key} {value}")
            : $"read {step.Key} {(step.Read is { } read ? $"[{string.Join(' ', read)}]" : "?")}");
        return string.Create(
            CultureInfo.InvariantCulture,
            $"process {transaction.Process}, {transaction.CallNs} to {transaction.ReturnNs}, {transaction.Outcome}: "
                + $"{string.Join(", ", steps)}");
    }
}
