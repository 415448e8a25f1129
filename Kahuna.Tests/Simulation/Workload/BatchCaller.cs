using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that writes and reads several keys with one call, and deletes by prefix. What a batch says of each key is a
/// call for that key; of an atomic batch, all keys have the same story. Owned by one client of a run.
/// </summary>
internal sealed class BatchCaller(SimCluster cluster, KahunaClient client, int process)
{
    private const string WholeRule = "an atomic batch is seen as a whole or not at all";
    private const string PrefixRule = "a delete by prefix removes its range and nothing else";

    /// <summary>Keys of an atomic batch: always written together.</summary>
    private const int KeysPerBatch = 4;

    /// <summary>For so long the same keys are used, so that their history stays short enough to be checked.</summary>
    private const long KeysNs = 8_000_000_000;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(110_000 + (ulong)process);

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(6 * cluster.Config.ThinkMs));
            switch (_random.Next(8))
            {
                case 0:
                    await DeletePrefixAsync();
                    break;
                case 1 or 2:
                    await RunAsync(isAtomic: false);
                    break;
                default:
                    await RunAsync(isAtomic: true);
                    break;
            }
        }
    }

    private async Task RunAsync(bool isAtomic)
    {
        // Eviction could take one key of a batch and leave the others.
        bool isEphemeral = cluster.Config is { HasEphemeral: true, Evicts: false }
            && _random.Chance(cluster.Config.Ephemeral);
        long age = cluster.Scheduler.NowNs / KeysNs;
        string[] keys =
        [
            .. Enumerable.Range(0, KeysPerBatch)
                .Select(i => isAtomic ? $"m{age}/{i}" : $"b{age}.{_random.Next(4)}.{i}"),
        ];
        CallKind kind = _random.Pick(
            [CallKind.Set, CallKind.Set, CallKind.Get, CallKind.Get, CallKind.Exists, CallKind.Delete]);
        string value = string.Create(CultureInfo.InvariantCulture, $"v{cluster.History.NextValue()}");
        long? ttlMs = kind == CallKind.Set && _random.Chance(0.3) ? _random.Pick([50, 500, 2_000]) : null;
        int conditional = kind is CallKind.Set or CallKind.Delete && _random.Chance(0.4)
            ? _random.Next(KeysPerBatch)
            : -1;
        Call? seen = conditional < 0 ? null : cluster.History.LatestOf(NameOf(keys[conditional], isEphemeral));
        long? revision = conditional < 0 ? null : Math.Max(1, seen?.Revision ?? 1);
        Call[] calls =
        [
            .. keys.Select((key, i) => cluster.History.Begin(
                new Call
                {
                    // A process has one call at a time; a batch has one for each key.
                    Process = (process * 1_000) + i,
                    Key = key,
                    IsEphemeral = isEphemeral,
                    IsAtomic = isAtomic,
                    Kind = kind,
                    CallNs = cluster.Scheduler.NowNs,
                    Value = kind == CallKind.Set ? value : null,
                    TtlMs = ttlMs,
                    OnlyIfRevision = i == conditional ? revision : null,
                },
                cluster.Scheduler)),
        ];
        try
        {
            await RunAsync(calls, isAtomic, isEphemeral);
        }
        catch (KahunaException error)
        {
            Array.ForEach(calls, call => Fail(call, error));
        }

        if (isAtomic)
        {
            CheckWhole(calls);
        }

        foreach (Call call in calls)
        {
            bool isUndone = isAtomic && conditional >= 0 && call is { Outcome: CallOutcome.Ok, Done: false };

            // That nothing was done says something of the key with the condition only.
            call.Outcome = isUndone && call.OnlyIfRevision is null ? CallOutcome.Fail : call.Outcome;
            cluster.History.End(call, cluster.Scheduler);
        }
    }

    private async Task RunAsync(Call[] calls, bool isAtomic, bool isEphemeral)
    {
        KeyValueClient store = client.KeyValues;
        BatchOptions options = new()
        {
            Atomic = isAtomic,
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
        };
        TimeSpan? ttl = calls[0].TtlMs is { } ms ? TimeSpan.FromMilliseconds(ms) : null;
        switch (calls[0].Kind)
        {
            case CallKind.Set:
                End(calls, await store.SetManyAsync(
                    calls.Select(call => new SetItem(
                        call.Key,
                        call.Value,
                        new SetOptions { Ttl = ttl, OnlyIfRevision = ToRevision(call.OnlyIfRevision) })),
                    options), static (call, set) => (call.Done, call.Revision) = (set.Applied, set.Revision.Value));
                break;
            case CallKind.Delete:
                End(calls, await store.DeleteManyAsync(
                    calls.Select(static call => new DeleteItem(
                        call.Key, new DeleteOptions { OnlyIfRevision = ToRevision(call.OnlyIfRevision) })),
                    options), static (call, gone) => (call.Done, call.Revision) = (gone.Deleted, gone.Revision.Value));
                break;
            case CallKind.Get:
                End(calls, await store.GetManyAsync(calls.Select(static call => call.Key), options),
                    static (call, got) =>
                    {
                        (call.Done, call.Revision) = (got.Found, got.Revision.Value);
                        call.FoundValue = got.Found ? got.Value.AsString() : null;
                    });
                break;
            default:
                End(calls, await store.ExistsManyAsync(calls.Select(static call => call.Key), options),
                    static (call, found) => (call.Done, call.Revision) = (found.Found, found.Revision.Value));
                break;
        }
    }

    private static void End<TResult>(Call[] calls, BatchResult<TResult> result, Action<Call, TResult> take)
        where TResult : struct
    {
        for (int i = 0; i < calls.Length; i++)
        {
            if (result[i].Error is { } error)
            {
                Fail(calls[i], error);
            }
            else
            {
                calls[i].Outcome = CallOutcome.Ok;
                take(calls[i], result[i].Result);
            }
        }
    }

    private static void Fail(Call call, KahunaException error)
    {
        call.Error = error.Code.ToString();
        call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
    }

    private void CheckWhole(Call[] calls)
    {
        if (calls[0].Outcome != CallOutcome.Ok)
        {
            return;
        }

        Call? other = Array.Find(
            calls, call => call.Done != calls[0].Done || call.FoundValue != calls[0].FoundValue);
        if (other is not null)
        {
            cluster.Rules.Break(WholeRule, $"{calls[0].Kind} at {process}: {Text(calls[0])}, but {Text(other)}");
        }
    }

    private static string Text(Call call) => $"{call.Key} {(call.Done ? "done" : "not done")} {call.FoundValue}";

    /// <summary>Writes keys that nobody else uses, deletes some by prefix, and looks at what is left.</summary>
    private async Task DeletePrefixAsync()
    {
        string prefix = $"d{process}.";
        string[] keys = [.. Enumerable.Range(0, 12).Select(i => $"{prefix}{i / 4}/{i:00}")];
        string target = $"{prefix}{_random.Next(3)}/";
        DeleteByPrefixOptions options = new()
        {
            Durability = Durability.Persistent,
            From = _random.Chance(0.3) ? _random.Pick(keys) : null,
            WithoutHistory = _random.Chance(0.5),
        };
        bool ContainsKey(string key) => key.StartsWith(target, StringComparison.Ordinal)
            && (options.From is null || string.CompareOrdinal(key, options.From) >= 0);
        try
        {
            BatchResult<SetResult> set = await client.KeyValues.SetManyAsync(
                keys.Select(static key => new SetItem(key, "x")),
                new BatchOptions { Durability = Durability.Persistent });
            set.ThrowIfAnyFailed();
            long deleted = await client.KeyValues.DeleteByPrefixAsync(target, options);
            List<string> left = [];
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(
                prefix, new ScanOptions { Durability = Durability.Persistent, KeysOnly = true }))
            {
                left.Add(entry.Key);
            }

            string[] expected = [.. keys.Where(key => !ContainsKey(key))];
            if (!left.SequenceEqual(expected))
            {
                cluster.Rules.Break(
                    PrefixRule, $"{target} from {options.From} at {process}: {string.Join(' ', left)} are left");
            }

            if (deleted > keys.Length)
            {
                cluster.Rules.Break(PrefixRule, $"{target} at {process}: {deleted} are said to be gone");
            }
        }
        catch (KahunaException)
        {
            // What is left is told by the next round, which writes all keys again.
        }
    }

    private static string NameOf(string key, bool isEphemeral) => isEphemeral ? "ephemeral " + key : key;

    private static Revision? ToRevision(long? number) => number is { } value ? new Revision(value) : null;
}
