namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Counts the failures of a run by message, so that the report can say what went wrong. Keeps a bounded number of
/// different messages. Thread-safe; failures are rare, so that a lock is enough.
/// </summary>
internal sealed class FailureLog
{
    /// <summary>Different messages that are kept; a run that fails in more ways counts the rest together.</summary>
    private const int MessagesMax = 8;
    private const string Other = "other failures";

    private readonly Lock _gate = new();
    private readonly Dictionary<string, long> _counts = [];

    public void Add(Exception failure)
    {
        string message = Line(failure.Message);
        lock (_gate)
        {
            if (!_counts.ContainsKey(message) && _counts.Count >= MessagesMax)
            {
                message = Other;
            }

            _counts[message] = _counts.GetValueOrDefault(message) + 1;
        }
    }

    /// <summary>The messages so far, most frequent first.</summary>
    public IReadOnlyList<(string Message, long Count)> ToList()
    {
        lock (_gate)
        {
            return
            [
                .. _counts
                    .Select(pair => (pair.Key, pair.Value))
                    .OrderByDescending(pair => pair.Value)
                    .ThenBy(pair => pair.Key, StringComparer.Ordinal),
            ];
        }
    }

    /// <summary>The message as one line.</summary>
    public static string Line(string message) =>
        string.Join(
            ' ', message.Split(['\r', '\n'], StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries));
}
