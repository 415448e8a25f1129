using System.Globalization;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What is promised of the revisions of a key, whenever they are looked at: one revision is one value, for who wrote
/// it, who read it as the latest, who reads it later by its number, and who is told of it as what was there before. A
/// model, because all nodes may be wrong alike. Owned by one check.
/// </summary>
internal sealed class RevisionHistory
{
    private readonly Dictionary<(string Name, long Revision), Sight> _sights = [];
    private readonly Dictionary<(string Name, long Revision), Call> _dropped = [];

    /// <summary>What is wrong with the calls for keys; null: nothing.</summary>
    public static string? Check(IEnumerable<Call> calls)
    {
        RevisionHistory history = new();
        Call[] known = [.. calls.Where(static call => call.Outcome == CallOutcome.Ok)];
        return known.Select(history.Note).FirstOrDefault(static wrong => wrong is not null)
            ?? known.Select(history.CheckPrevious).FirstOrDefault(static wrong => wrong is not null)
            ?? known.Select(history.CheckDropped).FirstOrDefault(static wrong => wrong is not null);
    }

    /// <summary>What the answer says of a revision agrees with what others said.</summary>
    private string? Note(Call call)
    {
        if (call is { AtRevision: { } asked, Done: true } && call.Revision != asked)
        {
            return $"{Describe(call)} asked for revision {asked}";
        }

        if (call is { Done: true, WithoutHistory: true, Revision: > 1 })
        {
            _dropped[(call.Name, call.Revision.Value - 1)] = call;
        }

        string? wrong = call.Revision is not { } revision || revision == 0 ? null : call.Kind switch
        {
            CallKind.Set when call.Done => See(call, revision, true, call.Value),
            CallKind.Increment when call.Done =>
                See(call, revision, true, call.Number?.ToString(CultureInfo.InvariantCulture)),
            CallKind.Get when call.Done => See(call, revision, true, call.FoundValue),
            CallKind.Get when call.AtRevision is null => See(call, revision, false, null),
            CallKind.Delete when call.Done => See(call, revision, false, null),
            _ => null,
        };
        return wrong ?? (call.PreviousRevision > 0 ? See(call, call.PreviousRevision, true, call.PreviousValue) : null);
    }

    private string? See(Call call, long revision, bool exists, string? value)
    {
        Sight sight = new(call, exists, value);
        return _sights.TryAdd((call.Name, revision), sight)
            || _sights[(call.Name, revision)] is var other && other.Exists == exists && other.Value == value
            ? null
            : $"{Describe(call)} says that revision {revision} is {sight}, and "
                + $"{Describe(_sights[(call.Name, revision)].Call)} that it is {_sights[(call.Name, revision)]}";
    }

    /// <summary>
    /// What was there before a write is the revision before it; before a write that was refused, it is the latest.
    /// </summary>
    private string? CheckPrevious(Call call)
    {
        if (!call.ReturnsPrevious || call.Revision is not { } revision)
        {
            return null;
        }

        long expected = call.Done ? revision - 1 : revision;
        if (call.PreviousRevision > 0)
        {
            return call.PreviousRevision == expected
                ? null
                : $"{Describe(call)} was told that revision {call.PreviousRevision} was there before";
        }

        // A key that was evicted, or whose epoch is over, was not there.
        return !call.IsEphemeral
            && call.Done
            && _sights.TryGetValue((call.Name, expected), out Sight? before)
            && before.Exists
            ? $"{Describe(call)} was told that nothing was there before, and {Describe(before.Call)} says that "
                + $"revision {expected} is {before}"
            : null;
    }

    /// <summary>A revision that was replaced without history is not to be had any more.</summary>
    private string? CheckDropped(Call call) =>
        call is { AtRevision: { } asked, Done: true }
            && _dropped.TryGetValue((call.Name, asked), out Call? write)
            && write.ReturnNs < call.CallNs
            ? $"{Describe(call)} found revision {asked}, which {Describe(write)} has replaced without history"
            : null;

    private static string Describe(Call call) =>
        $"{call.Kind} of {call.Name} by {call.Process} at revision {call.Revision}";

    /// <summary>What one answer says of a revision.</summary>
    private sealed record Sight(Call Call, bool Exists, string? Value)
    {
        public override string ToString() =>
            !Exists
                ? "a deletion"
                : Value is null
                ? "the null value"
                : $"\"{(Value.Length > 30 ? Value[..30] + "…" : Value)}\"";
    }
}
