using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.WatchStreams;

/// <summary>
/// The writes of a history, key by key: those whose revision is known, those that took effect perhaps or at a revision
/// that was not recorded, and those that failed. Immutable.
/// </summary>
internal sealed class WrittenChanges
{
    private readonly Dictionary<string, SortedDictionary<long, WrittenChange>> _known = new(StringComparer.Ordinal);
    private readonly ILookup<string, WrittenChange> _candidates;
    private readonly ILookup<string, WrittenChange> _failed;
    private readonly ILookup<string, HistoryOperation> _extensions;

    public WrittenChanges(IReadOnlyList<HistoryOperation> operations)
    {
        List<WrittenChange> candidates = [];
        List<WrittenChange> failed = [];
        foreach (HistoryOperation write in operations.Where(static each => each.Result.Affirmed != false))
        {
            if (ChangeOf(write) is not { } change)
            {
                continue;
            }

            if (write.Outcome == HistoryOutcome.Fail)
            {
                failed.Add(change);
            }
            else if (!IsCertain(write) || write.Result.Revision is not { } revision)
            {
                candidates.Add(change);
            }
            else
            {
                if (!_known.TryGetValue(write.Key, out SortedDictionary<long, WrittenChange>? changes))
                {
                    _known[write.Key] = changes = [];
                }

                // Two writes of one revision are found by the check for linearizability.
                changes.TryAdd(revision, change);
            }
        }

        _candidates = candidates.ToLookup(static change => change.Operation.Key, StringComparer.Ordinal);
        _failed = failed.ToLookup(static change => change.Operation.Key, StringComparer.Ordinal);
        _extensions = operations
            .Where(static each => each.Kind == OperationKind.Extend
                && each.Outcome != HistoryOutcome.Fail
                && each.Result.Affirmed != false)
            .ToLookup(static each => each.Key, StringComparer.Ordinal);
    }

    /// <summary>Keys with a write of a known revision.</summary>
    public IEnumerable<string> Keys => _known.Keys;

    /// <summary>The writes of a key whose revision is known, by revision.</summary>
    public IEnumerable<WrittenChange> Known(string key) =>
        _known.TryGetValue(key, out SortedDictionary<long, WrittenChange>? changes) ? changes.Values : [];

    /// <summary>The write of a revision; null: none is known.</summary>
    public WrittenChange? At(string key, long revision) => _known.GetValueOrDefault(key)?.GetValueOrDefault(revision);

    /// <summary>The writes of a key that may be behind any revision.</summary>
    public IEnumerable<WrittenChange> Candidates(string key) => _candidates[key];

    /// <summary>The writes of a key that surely did not happen.</summary>
    public IEnumerable<WrittenChange> Failed(string key) => _failed[key];

    /// <summary>Whether a call may have changed when the key expires.</summary>
    public bool IsExtended(string key) => _extensions[key].Any();

    /// <summary>
    /// Whether a key may be gone at a time although its newest acknowledged write has set it: a later call removed it,
    /// or limited its life.
    /// </summary>
    public bool MayBeGone(string key, WrittenChange newest, long atNs) =>
        newest.HasTtl
        || IsExtended(key)
        || Known(key).Where(change => change.Revision > newest.Revision).Concat(Candidates(key)).Any(change =>
            change.Operation.CallNs <= atNs && (change.Kind == StreamEventKind.Deleted || change.HasTtl));

    private static WrittenChange? ChangeOf(HistoryOperation write) => write.Kind switch
    {
        OperationKind.Set => new WrittenChange(write, StreamEventKind.Set, true, write.Arguments.Value),
        OperationKind.Increment =>
            new WrittenChange(write, StreamEventKind.Set, write.Result.HasValue, write.Result.Value),
        OperationKind.Delete => new WrittenChange(write, StreamEventKind.Deleted, false, null),
        _ => null,
    };

    /// <summary>It was answered, and the answer says or implies that it took effect.</summary>
    private static bool IsCertain(HistoryOperation write) =>
        write.Outcome == HistoryOutcome.Ok
        && (write.Result.Affirmed == true
            || write is { Kind: OperationKind.Set } and
            {
                Arguments:
                {
                    OnlyIfAbsent: false, OnlyIfPresent: false, OnlyIfValue: false, OnlyIfRevision: null, Fence: null,
                },
            });
}
