namespace Kahuna.Cli.Diagnosis;

/// <summary>
/// Tells which slow operations are new since the reading before. A node numbers its operations from its start; a number
/// that names another operation than before means that the node was restarted. Used by one command.
/// </summary>
internal sealed class SlowNews
{
    private readonly Dictionary<Uri, (long Id, DateTimeOffset? At)> _newest = [];
    private readonly Dictionary<Uri, string?> _problems = [];

    /// <summary>Operations that were new at the last reading, but that a node no longer had.</summary>
    public long Missed { get; private set; }

    /// <summary>The operations that no reading before had, oldest first.</summary>
    /// <param name="answers">What all nodes said.</param>
    public IReadOnlyList<SlowOperation> Of(IEnumerable<NodeAnswer> answers)
    {
        Missed = 0;
        List<SlowOperation> found = [];
        foreach (NodeAnswer answer in answers.Where(static answer => answer.Root is not null))
        {
            SlowOperation[] told = [.. SlowOperation.In(answer).Where(static operation => operation.Id is not null)];
            (long Id, DateTimeOffset? At) last = _newest.GetValueOrDefault(answer.Endpoint);
            bool isRestarted = told.Length > 0 && (told.Max(static operation => operation.Id) < last.Id
                || told.Any(operation => operation.Id == last.Id && operation.At != last.At));
            long from = isRestarted ? 0 : last.Id;
            found.AddRange(told.Where(operation => operation.Id > from));
            if (told.Length == 0)
            {
                continue;
            }

            bool isFirst = !_newest.ContainsKey(answer.Endpoint);
            Missed += isFirst ? 0 : Math.Max(0, told.Min(static operation => operation.Id!.Value) - from - 1);
            SlowOperation newest = told.MaxBy(static operation => operation.Id)!;
            _newest[answer.Endpoint] = (newest.Id!.Value, newest.At);
        }

        found.Sort(static (a, b) => Nullable.Compare(a.At, b.At));
        return found;
    }

    /// <summary>The nodes that told nothing, as long as that is news.</summary>
    public IEnumerable<NodeAnswer> NewlySilent(IEnumerable<NodeAnswer> answers)
    {
        foreach (NodeAnswer answer in answers)
        {
            bool isNews = _problems.GetValueOrDefault(answer.Endpoint) != answer.Problem;
            _problems[answer.Endpoint] = answer.Problem;
            if (isNews && answer.Problem is not null)
            {
                yield return answer;
            }
        }
    }
}
