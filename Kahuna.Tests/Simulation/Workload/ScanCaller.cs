using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that scans the keys of a run, page by page. What a scan says of each key is a read of that key between its
/// beginning and its end. A consistent scan says all of it of one moment. Owned by one client of a run.
/// </summary>
internal sealed class ScanCaller(SimCluster cluster, KahunaClient client, int process)
{
    /// <summary>How all keys of a run begin.</summary>
    private const string Prefix = "k";

    /// <summary>The longest pause, so that a caller ends when the load does.</summary>
    private const double PauseMsMax = 20_000;

    private const string OrderRule = "scans return each key once and in order";

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(80_000 + (ulong)process);

    /// <summary>Which scans are consistent: a source of its own, so that the others stay as they are.</summary>
    private readonly SimRandom _consistent = new SimRandom(cluster.Config.Seed).Fork(33_000 + (ulong)process);

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(Math.Min(_random.Exponential(10 * cluster.Config.ThinkMs), PauseMsMax));
            await ScanAsync();
        }
    }

    private async Task ScanAsync()
    {
        bool isEphemeral = cluster.Config.HasEphemeral && _random.Chance(cluster.Config.Ephemeral);
        string[] keys = cluster.Keys.Names();
        ScanOptions options = new()
        {
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Descending = _random.Chance(0.5),
            KeysOnly = _random.Chance(0.2),
            Limit = _random.Chance(0.3) ? _random.Between(1, 6) : null,
            PageSize = _random.Between(1, 5),
            Consistent = _consistent.Chance(cluster.Config.ConsistentScans),
            From = _random.Chance(0.3) ? _random.Pick(keys) : null,
            To = _random.Chance(0.3) ? _random.Pick(keys) : null,
        };
        if (options is { From: { } from, To: { } to } && string.CompareOrdinal(from, to) > 0)
        {
            options = options with { From = to, To = from };
        }

        Dictionary<string, Call> calls = keys
            .Where(key => (options.From is null || string.CompareOrdinal(key, options.From) >= 0)
                && (options.To is null || string.CompareOrdinal(key, options.To) < 0))
            .Select((key, i) => cluster.History.Begin(
                new Call
                {
                    // A process has one call at a time; a scan has one for each key.
                    Process = (process * 1_000) + i,
                    Key = key,
                    IsEphemeral = isEphemeral,
                    Kind = options.KeysOnly ? CallKind.Exists : CallKind.Get,
                    CallNs = cluster.Scheduler.NowNs,
                },
                cluster.Scheduler))
            .ToDictionary(static call => call.Key);
        List<KeyValueEntry> found = [];
        bool isWhole = false;
        long beginNs = cluster.Scheduler.NowNs;
        long openedNs = 0;
        try
        {
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(Prefix, options))
            {
                openedNs = found.Count == 0 ? cluster.Scheduler.NowNs : openedNs;
                found.Add(entry);
                if (options.Consistent && _consistent.Chance(0.1))
                {
                    // Pages that are read late still show the moment.
                    await cluster.PauseAsync(_consistent.Exponential(cluster.Config.ThinkMs));
                }
            }

            isWhole = found.Count < (options.Limit ?? long.MaxValue);
        }
        catch (KahunaException)
        {
            // What was read up to now holds.
        }

        CheckOrder(found, options.Descending);
        End(calls, found, isWhole, options.Descending);
        if (options.Consistent)
        {
            cluster.Moments.Add(new ScanMoment(
                beginNs,
                found.Count == 0 ? cluster.Scheduler.NowNs : openedNs,
                calls.Values.Where(static call => call.Outcome == CallOutcome.Ok)
                    .ToDictionary(static call => call.Name, static call => call.Revision)));
        }
    }

    private void CheckOrder(List<KeyValueEntry> found, bool descends)
    {
        for (int i = 1; i < found.Count; i++)
        {
            int sign = string.CompareOrdinal(found[i - 1].Key, found[i].Key);
            if (descends ? sign <= 0 : sign >= 0)
            {
                cluster.Rules.Break(OrderRule, $"{found[i].Key} came after {found[i - 1].Key} at {process}");
            }
        }
    }

    /// <summary>
    /// A key that the scan passed over was not there. Nothing is known of a key that it did not reach.
    /// </summary>
    private void End(Dictionary<string, Call> calls, List<KeyValueEntry> found, bool isWhole, bool descends)
    {
        Dictionary<string, KeyValueEntry> byKey = found.ToDictionary(static entry => entry.Key);
        string? last = found.Count > 0 ? found[^1].Key : null;
        foreach (Call call in calls.Values)
        {
            bool isReached = isWhole
                || (last is not null && Math.Sign(string.CompareOrdinal(call.Key, last)) != (descends ? -1 : 1));
            call.Outcome = isReached ? CallOutcome.Ok : CallOutcome.Fail;
            if (byKey.TryGetValue(call.Key, out KeyValueEntry entry))
            {
                (call.Done, call.Revision) = (true, entry.Revision.Value);
                call.FoundValue = call.Kind == CallKind.Get && !entry.Value.IsNull ? entry.Value.AsString() : null;
            }

            cluster.History.End(call, cluster.Scheduler);
        }
    }
}
