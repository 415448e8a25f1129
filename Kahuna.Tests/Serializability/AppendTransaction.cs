using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Serializability;

/// <summary>
/// One transaction of a list-append history: it appends values to lists, and reads whole lists. Immutable.
/// </summary>
internal sealed record AppendTransaction
{
    /// <summary>The caller.</summary>
    public required long Process { get; init; }

    /// <summary>When it was called.</summary>
    public required long CallNs { get; init; }

    /// <summary>When it was answered, or given up; null: it never returned.</summary>
    public long? ReturnNs { get; init; }

    /// <summary>How it ended for its caller.</summary>
    public required HistoryOutcome Outcome { get; init; }

    /// <summary>What it did, in this order.</summary>
    public required AppendStep[] Steps { get; init; }

    /// <summary>The line of the file; 0 when there is none.</summary>
    public int Line { get; init; }

    /// <summary>What it found of others in each list that it read.</summary>
    public IEnumerable<(string Key, long[] Read)> FirstReads()
    {
        HashSet<string> read = new(StringComparer.Ordinal);
        Dictionary<string, int> own = new(StringComparer.Ordinal);
        foreach (AppendStep step in Steps)
        {
            if (step.Appended is not null)
            {
                own[step.Key] = own.GetValueOrDefault(step.Key) + 1;
            }
            else if (step.Read is { } list && read.Add(step.Key))
            {
                yield return (step.Key, list[..^Math.Min(list.Length, own.GetValueOrDefault(step.Key))]);
            }
        }
    }
}

/// <summary>One step of a transaction: an append, or a read. Immutable.</summary>
/// <param name="Key">The list.</param>
/// <param name="Appended">The value that was appended; null for a read.</param>
/// <param name="Read">What was read; null for an append, and for a read whose answer is not known.</param>
internal sealed record AppendStep(string Key, long? Appended, long[]? Read);
