using System.Globalization;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What can be said of keys that may go at any moment: each revision is written once, and whoever reads it reads what
/// was written. That no revision is older than one that was acknowledged before is checked as the answers come
/// (<see cref="CallLog"/>). Stateless.
/// </summary>
internal static class EvictedHistory
{
    /// <summary>What is wrong with the calls for ephemeral keys; null: nothing.</summary>
    public static string? Check(IEnumerable<Call> calls)
    {
        Dictionary<(string Key, long Revision), Call> written = [];
        List<Call> read = [];
        HashSet<(string Key, string Value)> values = [];
        HashSet<string> counted = [];
        foreach (Call call in calls)
        {
            if (call.Kind == CallKind.Set && call.Outcome != CallOutcome.Fail)
            {
                values.Add((call.Key, call.Value!));
            }
            else if (call.Kind == CallKind.Increment && call.Outcome != CallOutcome.Fail)
            {
                counted.Add(call.Key);
            }

            if (call is not { Outcome: CallOutcome.Ok, Done: true, Revision: { } revision })
            {
                continue;
            }

            if (call.Kind is CallKind.Get)
            {
                read.Add(call);
            }
            else if (call.Kind is CallKind.Set or CallKind.Increment or CallKind.Delete
                && !written.TryAdd((call.Key, revision), call))
            {
                return $"{Describe(call)} and {Describe(written[(call.Key, revision)])} have written the same revision";
            }
        }

        foreach (Call call in read)
        {
            if (written.TryGetValue((call.Key, call.Revision!.Value), out Call? write)
                && Written(write) is var text
                && text != call.FoundValue)
            {
                return $"{Describe(call)} read \"{call.FoundValue}\" and {Describe(write)} wrote \"{text}\"";
            }

            if (!values.Contains((call.Key, call.FoundValue!)) && !counted.Contains(call.Key))
            {
                return $"{Describe(call)} read \"{call.FoundValue}\", which nobody wrote";
            }
        }

        return null;
    }

    private static string? Written(Call write) => write.Kind switch
    {
        CallKind.Set => write.Value,
        CallKind.Increment => write.Number?.ToString(CultureInfo.InvariantCulture),
        _ => null,
    };

    private static string Describe(Call call) =>
        $"{call.Kind} of {call.Key} by {call.Process} at revision {call.Revision}";
}
