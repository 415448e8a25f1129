namespace Kahuna.Benchmark.Options;

/// <summary>An option that one workload has of its own; its value is a whole number. Immutable.</summary>
/// <param name="Name">As on the command line, with the dashes before it.</param>
/// <param name="ValueName">What the help calls the value.</param>
/// <param name="Default">The value without the option.</param>
/// <param name="Min">Smallest value.</param>
/// <param name="Max">Largest value.</param>
/// <param name="Description">The line of the help.</param>
internal sealed record WorkloadOption(string Name, string ValueName, int Default, int Min, int Max, string Description)
{
    /// <summary>The name in the JSON report: <c>queueLimit</c> for <c>--queue-limit</c>.</summary>
    public string ReportName
    {
        get
        {
            string[] words = Name.TrimStart('-').Split('-');
            return words[0] + string.Concat(words.Skip(1).Select(Capitalized));
        }
    }

    private static string Capitalized(string word) => char.ToUpperInvariant(word[0]) + word[1..];
}
