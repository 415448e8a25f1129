using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>What the search found for a history, key by key. Immutable.</summary>
internal sealed record HistoryVerdict(IReadOnlyList<KeyVerdict> Keys)
{
    /// <summary>Not linearizable as soon as one key is not; otherwise undecided as soon as one key is.</summary>
    public Verdict Verdict =>
        Keys.Any(key => key.Verdict == Verdict.NotLinearizable) ? Verdict.NotLinearizable
        : Keys.Any(key => key.Verdict == Verdict.Undecided) ? Verdict.Undecided
        : Verdict.Linearizable;

    /// <summary>
    /// Writes what is wrong: for each such key a sentence, and the operations that contradict each other as lines of a
    /// history file. Nothing when nothing is.
    /// </summary>
    public void WriteFindings(TextWriter target)
    {
        HistoryWriter lines = new(target);
        foreach (KeyVerdict key in Keys.Where(key => key.Verdict != Verdict.Linearizable))
        {
            target.WriteLine(Sentence(key));
            foreach (HistoryOperation operation in key.Contradiction?.Operations ?? [])
            {
                lines.Write(operation);
            }
        }
    }

    /// <summary>The findings as one text, for the message of a failed test.</summary>
    public string Findings()
    {
        using StringWriter target = new(CultureInfo.InvariantCulture) { NewLine = "\n" };
        WriteFindings(target);
        return target.ToString();
    }

    private static string Sentence(KeyVerdict key)
    {
        if (key.Verdict == Verdict.Undecided)
        {
            return $"key {key.Key}: undecided after {key.States} states";
        }

        if (key.Contradiction is not { } found)
        {
            return $"key {key.Key}: not linearizable";
        }

        string what = found.Operations.Count == 1
            ? "this answer has no explanation"
            : $"these {found.Operations.Count} operations contradict each other";
        string others = found.LeftOut == 0 ? string.Empty : $", whatever its other {found.LeftOut} did";
        string rule = found.Rule is null ? string.Empty : $" ({found.Rule})";
        return $"key {key.Key}: not linearizable{rule}; "
            + $"{what}{others}{(found.IsMinimal ? string.Empty : " (more could perhaps be left out)")}:";
    }
}
