namespace Kahuna.Server.Hosting.Options;

/// <summary>Suggests the name that a user probably meant. Pure.</summary>
internal static class NearestName
{
    /// <summary>The end of a sentence "unknown …": the nearest candidate, if one is near enough.</summary>
    public static string Suggestion(string name, IEnumerable<string> candidates)
    {
        string? best = null;
        // Up to a third of the letters may be wrong; more is another word.
        int bestDistance = Math.Max(2, name.Length / 3) + 1;
        foreach (string candidate in candidates)
        {
            int distance = Distance(name.ToUpperInvariant(), candidate.ToUpperInvariant());
            if (distance < bestDistance)
            {
                best = candidate;
                bestDistance = distance;
            }
        }

        return best is null ? "." : $"; did you mean {best}?";
    }

    /// <summary>Levenshtein's edit distance.</summary>
    private static int Distance(string a, string b)
    {
        int[] previous = [.. Enumerable.Range(0, b.Length + 1)];
        int[] current = new int[b.Length + 1];
        for (int i = 1; i <= a.Length; i++)
        {
            current[0] = i;
            for (int j = 1; j <= b.Length; j++)
            {
                int substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
                current[j] = Math.Min(substitution, Math.Min(previous[j], current[j - 1]) + 1);
            }

            (previous, current) = (current, previous);
        }

        return previous[b.Length];
    }
}
