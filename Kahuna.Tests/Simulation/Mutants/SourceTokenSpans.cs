namespace Kahuna.Tests.Simulation.Mutants;

/// <summary>Searches tokens by their text. Stateless; any thread.</summary>
internal static class SourceTokenSpans
{
    /// <summary>The place of the first occurrence from a place on; -1: there is none.</summary>
    public static int IndexOfTokens(
        this ReadOnlySpan<SourceToken> tokens, ReadOnlySpan<SourceToken> sought, int from = 0)
    {
        for (int at = from; at + sought.Length <= tokens.Length; at++)
        {
            if (tokens[at..].CommonPrefix(sought) == sought.Length)
            {
                return at;
            }
        }

        return -1;
    }

    /// <summary>The number of tokens with which both begin.</summary>
    public static int CommonPrefix(this ReadOnlySpan<SourceToken> left, ReadOnlySpan<SourceToken> right)
    {
        int count = 0;
        while (count < left.Length && count < right.Length && left[count].Text == right[count].Text)
        {
            count++;
        }

        return count;
    }

    /// <summary>The number of places at which both have the same token.</summary>
    public static int CountSame(this ReadOnlySpan<SourceToken> left, ReadOnlySpan<SourceToken> right)
    {
        int count = 0;
        for (int i = 0; i < left.Length && i < right.Length; i++)
        {
            count += left[i].Text == right[i].Text ? 1 : 0;
        }

        return count;
    }
}
