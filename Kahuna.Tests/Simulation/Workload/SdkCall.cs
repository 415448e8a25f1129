using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>A caller's operation, made with the shipped client. Stateless.</summary>
internal static class SdkCall
{
    /// <summary>Makes the call, and fills in what came back.</summary>
    public static async Task RunAsync(KeyValueClient store, Call call, CancellationToken ct)
    {
        TimeSpan? ttl = call.TtlMs is { } ms ? TimeSpan.FromMilliseconds(ms) : null;
        Durability durability = call.IsEphemeral ? Durability.Ephemeral : Durability.Persistent;
        KahunaValue? compared = call.OnlyIfNull ? KahunaValue.Null
            : call.OnlyIfValue is { } text ? (KahunaValue)text : default(KahunaValue?);
        switch (call.Kind)
        {
            case CallKind.Set:
                SetOptions options = new()
                {
                    Durability = durability,
                    OnlyIfAbsent = call.OnlyIfAbsent,
                    OnlyIfPresent = call.OnlyIfPresent,
                    OnlyIfValue = compared,
                    OnlyIfRevision = ToRevision(call.OnlyIfRevision),
                    Ttl = ttl,
                    WithoutHistory = call.WithoutHistory,
                    ReturnPrevious = call.ReturnsPrevious,
                };
                SetResult set = call.ReturnsPrevious
                    ? await store.GetAndSetAsync(call.Key, call.Value, options, ct)
                    : await store.SetAsync(call.Key, call.Value, options, ct);
                (call.Done, call.Revision) = (set.Applied, set.Revision.Value);
                (call.PreviousRevision, call.PreviousValue) = call.ReturnsPrevious
                    ? (set.PreviousRevision.Value, TextOf(set.Previous))
                    : default;
                break;
            case CallKind.Get:
                GetResult got = await store.GetAsync(
                    call.Key,
                    new ReadOptions { Durability = durability, AtRevision = ToRevision(call.AtRevision) },
                    ct);
                (call.Done, call.Revision) = (got.Found, got.Revision.Value);
                call.FoundValue = got.Found ? TextOf(got.Value) : null;
                break;
            case CallKind.Exists:
                ExistsResult exists = await store.ExistsAsync(
                    call.Key, new ReadOptions { Durability = durability }, ct);
                (call.Done, call.Revision) = (exists.Found, exists.Revision.Value);
                break;
            case CallKind.Delete:
                DeleteResult deleted = await store.DeleteAsync(
                    call.Key,
                    new DeleteOptions
                    {
                        Durability = durability,
                        OnlyIfValue = compared,
                        OnlyIfRevision = ToRevision(call.OnlyIfRevision),
                        WithoutHistory = call.WithoutHistory,
                        ReturnPrevious = call.ReturnsPrevious,
                    },
                    ct);
                (call.Done, call.Revision) = (deleted.Deleted, deleted.Revision.Value);
                (call.PreviousRevision, call.PreviousValue) = call.ReturnsPrevious
                    ? (deleted.PreviousRevision.Value, TextOf(deleted.Previous))
                    : default;
                break;
            case CallKind.Extend:
                ExtendResult extended = await store.ExtendAsync(
                    call.Key, ttl!.Value, new ExtendOptions { Durability = durability }, ct);
                (call.Done, call.Revision) = (extended.Extended, extended.Revision.Value);
                break;
            case CallKind.Increment when call.IsTry:
                TryIncrementResult tried = await store.TryIncrementAsync(
                    call.Key, call.By, new IncrementOptions { Durability = durability }, ct);
                (call.Done, call.Revision, call.Number) =
                    (tried.Applied, tried.Applied ? tried.Revision.Value : null, tried.Value);
                break;
            case CallKind.Increment:
                IncrementResult incremented = await store.IncrementAsync(
                    call.Key, call.By, new IncrementOptions { Durability = durability }, ct);
                (call.Done, call.Revision, call.Number) = (true, incremented.Revision.Value, incremented.Value);
                break;
        }
    }

    private static string? TextOf(KahunaValue? value) => value is { IsNull: false } text ? text.ToString() : null;

    private static Revision? ToRevision(long? number) => number is { } value ? new Revision(value) : null;
}
