using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// The SDK, which finds the leader and repeats what surely did not happen. Owns its client; any thread.
/// </summary>
internal sealed class SdkTarget(KahunaClient client) : ISoakTarget
{
    public async Task<SoakAnswer> RunAsync(HistoryOperation operation, CancellationToken abandoned)
    {
        try
        {
            return SoakAnswer.Ok(await CallAsync(client.KeyValues, operation, abandoned));
        }
        catch (KahunaException failure) when (IsExplained(failure.Code))
        {
            return SoakAnswer.Failed(failure.Code.ToString(), failure.IsSafeToRetry);
        }
        catch (KahunaCanceledException failure)
        {
            return SoakAnswer.Failed("Canceled", failure.Outcome == OperationOutcome.DidNotHappen);
        }
    }

    public ValueTask DisposeAsync() => client.DisposeAsync();

    /// <summary>
    /// A node that is killed or stopped explains refusals, silence and lost connections, and nothing else.
    /// </summary>
    private static bool IsExplained(KahunaErrorCode code) =>
        code is KahunaErrorCode.Unavailable
            or KahunaErrorCode.Overloaded
            or KahunaErrorCode.DeadlineExceeded
            or KahunaErrorCode.ConnectionLost
            or KahunaErrorCode.OutcomeUnknown;

    private static Task<OperationResult> CallAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct) =>
        operation.Kind switch
        {
            OperationKind.Set => SetAsync(store, operation, ct),
            OperationKind.Get => GetAsync(store, operation, ct),
            OperationKind.Exists => ExistsAsync(store, operation, ct),
            OperationKind.Delete => DeleteAsync(store, operation, ct),
            OperationKind.Extend => ExtendAsync(store, operation, ct),
            _ => IncrementAsync(store, operation, ct),
        };

    private static async Task<OperationResult> SetAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        OperationArguments asked = operation.Arguments;
        SetOptions options = new()
        {
            OnlyIfAbsent = asked.OnlyIfAbsent,
            OnlyIfPresent = asked.OnlyIfPresent,
            OnlyIfValue = Compared(asked),
            OnlyIfRevision = asked.OnlyIfRevision is { } revision ? new Revision(revision) : null,
            Ttl = asked.TtlMs is { } ttlMs ? TimeSpan.FromMilliseconds(ttlMs) : null,
        };
        SetResult set = await store.SetAsync(operation.Key, asked.Value, options, ct);
        return new OperationResult { Affirmed = set.Applied, Revision = set.Revision.Value };
    }

    private static async Task<OperationResult> GetAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        GetResult got = await store.GetAsync(operation.Key, null, ct);
        return new OperationResult
        {
            Affirmed = got.Found,
            HasValue = got.Found,
            Value = got.Found ? got.Value.AsString() : null,
            Revision = got.Revision.Value,
        };
    }

    private static async Task<OperationResult> ExistsAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        ExistsResult exists = await store.ExistsAsync(operation.Key, null, ct);
        return new OperationResult { Affirmed = exists.Found, Revision = exists.Revision.Value };
    }

    private static async Task<OperationResult> DeleteAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        DeleteOptions options = new()
        {
            OnlyIfValue = Compared(operation.Arguments),
            OnlyIfRevision = operation.Arguments.OnlyIfRevision is { } revision ? new Revision(revision) : null,
        };
        DeleteResult deleted = await store.DeleteAsync(operation.Key, options, ct);
        return new OperationResult { Affirmed = deleted.Deleted, Revision = deleted.Revision.Value };
    }

    private static async Task<OperationResult> ExtendAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        ExtendOptions options = new()
        {
            OnlyIfValue = Compared(operation.Arguments),
            OnlyIfRevision = operation.Arguments.OnlyIfRevision is { } revision ? new Revision(revision) : null,
        };
        ExtendResult extended = await store.ExtendAsync(
            operation.Key, TimeSpan.FromMilliseconds(operation.Arguments.TtlMs!.Value), options, ct);
        return new OperationResult { Affirmed = extended.Extended, Revision = extended.Revision.Value };
    }

    /// <summary>The SDK tells no revision of a refused increment.</summary>
    private static async Task<OperationResult> IncrementAsync(
        KeyValueClient store, HistoryOperation operation, CancellationToken ct)
    {
        TryIncrementResult sum = await store.TryIncrementAsync(operation.Key, operation.Arguments.By, null, ct);
        return sum.Applied
            ? new OperationResult
            {
                Affirmed = true,
                HasValue = true,
                Value = sum.Value.ToString(CultureInfo.InvariantCulture),
                Revision = sum.Revision.Value,
            }
            : new OperationResult { Affirmed = false };
    }

    private static KahunaValue? Compared(OperationArguments asked) =>
        asked.OnlyIfValue ? (KahunaValue)asked.ComparedValue : default(KahunaValue?);
}
