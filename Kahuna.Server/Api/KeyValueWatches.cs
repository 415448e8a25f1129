using System.Globalization;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Api.Watches;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api;

/// <summary>Watches of foreign clients, one for each call. Any thread.</summary>
/// <param name="execute">Executes a command: encoded, time until the deadline, cancelled when nobody waits.</param>
/// <param name="partitions">Number of partitions.</param>
/// <param name="clusterId">Names the cluster.</param>
/// <param name="hub">The node's watches.</param>
/// <param name="budget">What reads of keys may take up.</param>
/// <param name="gate">Decides what callers may watch; null: everything.</param>
internal sealed class KeyValueWatches(
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute,
    int partitions,
    string clusterId,
    WatchHub hub,
    ScanBudget budget,
    AccessGate? gate)
{
    private const uint IntervalMsMin = 1_000;
    private const uint IntervalMsMax = 3_600_000;

    /// <summary>Keys of a page of the state.</summary>
    private const int KeysPerPage = 1_000;

    private readonly ulong _cluster = PositionFormat.ClusterTag(clusterId);

    /// <summary>Sends the state, if asked for, and then the changes until the call is over.</summary>
    public async Task RunAsync(
        WatchKeyValuesRequest request,
        IServerStreamWriter<WatchKeyValuesResponse> responses,
        ServerCallContext context)
    {
        Durability durability = DurabilityField.Read(request.Durability);
        WatchStart start = new(_cluster, durability, partitions);
        WatchedKeys keys = Check(request, durability, start);
        using (ScanCall call = budget.Begin(context, isStream: request.WithState))
        {
            await call.GuardAsync(request.WithState
                ? () => SendStateAsync(keys, start, call, responses, context.CancellationToken)
                : () => FindNowAsync(keys, start, call)).ConfigureAwait(false);
        }

        if (request.FromPosition.Length > 0)
        {
            start.GoTo(request.FromPosition);
        }

        WatchMessages messages = new(request, start);
        WatchKeyValuesResponse begun = messages.Begun();
        begun.StateComplete = request.WithState;
        await responses.WriteAsync(begun, context.CancellationToken).ConfigureAwait(false);
        WatchAccess? access = gate is null ? null : new WatchAccess(gate, CallerOfCall.Current);
        await new KeyValueWatch(hub, keys, messages, responses, execute, access, context.CancellationToken)
            .RunAsync().ConfigureAwait(false);
    }

    private static WatchedKeys Check(WatchKeyValuesRequest request, Durability durability, WatchStart start)
    {
        (WatchScope scope, string field, string text) = request.TargetCase switch
        {
            WatchKeyValuesRequest.TargetOneofCase.Key => (WatchScope.Key, "key", request.Key),
            WatchKeyValuesRequest.TargetOneofCase.Bucket => (WatchScope.Bucket, "bucket", request.Bucket),
            WatchKeyValuesRequest.TargetOneofCase.Prefix => (WatchScope.Prefix, "prefix", request.Prefix),
            _ => throw Refuse("none of key, bucket and prefix is set; one of them says what is watched"),
        };
        byte[] name = CommandText.Encode(field, text);
        string? reason = WatchCheck.NameRefusal(scope, name)
            ?? (durability is not (Durability.Persistent or Durability.Ephemeral)
                ? "durability is not set; it must be persistent or ephemeral" : null)
            ?? (request.WithState && request.FromPosition.Length > 0
                ? "with_state and from_position contradict each other" : null)
            ?? (request.ProgressIntervalMs is not (0 or (>= IntervalMsMin and <= IntervalMsMax))
                ? string.Create(
                    CultureInfo.InvariantCulture,
                    $"progress_interval_ms is {request.ProgressIntervalMs:N0}; it must be {IntervalMsMin:N0} to "
                        + $"{IntervalMsMax:N0}, or 0 for none")
                : null);
        return reason is null
            ? new WatchedKeys(scope, name, durability, !request.KeysOnly, start) : throw Refuse(reason);
    }

    /// <summary>Asks all leaders up to where their partitions are changed.</summary>
    private Task FindNowAsync(WatchedKeys keys, WatchStart start, ScanCall call) =>
        call.EachAsync(Enumerable.Range(0, partitions), async (partition, ct) =>
        {
            byte[] answer = await call.ReadAsync(() => execute(keys.Now(partition), call.TimeLeft, ct), ct)
                .ConfigureAwait(false);
            start.Points[partition] = PointOf(answer);
            call.Release(answer.Length);
        });

    /// <summary>Sends all keys, a page at a time, and notes what each page has seen.</summary>
    private async Task SendStateAsync(
        WatchedKeys keys,
        WatchStart start,
        ScanCall call,
        IServerStreamWriter<WatchKeyValuesResponse> responses,
        CancellationToken ct)
    {
        for (int partition = 0; partition < partitions; partition++)
        {
            byte[]? last = null;
            do
            {
                byte[] answer = await call.ReadAsync(
                    () => execute(keys.Page(partition, last, KeysPerPage), call.TimeLeft, ct), ct)
                    .ConfigureAwait(false);
                (WatchKeyValuesResponse message, last) = ReadPage(answer, keys);
                start.AddPage(partition, last, PointOf(answer));
                if (message.State.Count > 0)
                {
                    await responses.WriteAsync(message, ct).ConfigureAwait(false);
                }

                call.Release(answer.Length);
            }
            while (last is not null);
        }
    }

    private static (WatchKeyValuesResponse Message, byte[]? Last) ReadPage(byte[] answer, WatchedKeys keys)
    {
        Outcome.TryRead(answer, out Outcome outcome);
        RangePage.TryRead(outcome.Value, out RangePage page);
        WatchKeyValuesResponse message = new();
        while (page.TryNext())
        {
            RangeEntry entry = page.Entry;
            if (keys.Has(entry.Key))
            {
                KeyValueEntry added = new() { Key = Encoding.UTF8.GetString(entry.Key), Revision = entry.Revision };
                if (keys.WithValues)
                {
                    added.Value = entry.IsNull ? new Value() : new Value { Data = ByteString.CopyFrom(entry.Value) };
                }

                message.State.Add(added);
            }
        }

        return (message, page.HasMore ? page.Last.ToArray() : null);
    }

    private static ChangePoint PointOf(byte[] answer)
    {
        Outcome.TryRead(answer, out Outcome outcome);
        return outcome.Point
            ?? throw OutcomeErrors.Build(
                StatusCode.Unavailable,
                "The partition's leader does not tell positions yet; nothing was changed. Try again when all nodes "
                    + "have been updated.",
                OutcomeErrors.DidNotHappen);
    }

    private static RpcException Refuse(string reason) => OutcomeErrors.Build(
        StatusCode.InvalidArgument, $"The watch was not begun: {reason}.", OutcomeErrors.DidNotHappen);
}
