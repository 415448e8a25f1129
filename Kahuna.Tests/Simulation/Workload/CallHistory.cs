using System.Globalization;
using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>The calls of a run as the linearizability checker takes them.</summary>
internal static class CallHistory
{
    public static HistoryOperation Of(Call call) => new()
    {
        Process = call.Process,
        Key = call.Key,
        Kind = Enum.Parse<OperationKind>(call.Kind.ToString()),
        CallNs = call.CallNs,
        ReturnNs = call.Outcome == CallOutcome.Open ? null : call.ReturnNs,
        Outcome = call.Outcome switch
        {
            CallOutcome.Ok => HistoryOutcome.Ok,
            CallOutcome.Fail => HistoryOutcome.Fail,
            _ => HistoryOutcome.Unknown,
        },
        Arguments = new OperationArguments
        {
            Value = call.Value,
            OnlyIfAbsent = call.OnlyIfAbsent,
            OnlyIfPresent = call.OnlyIfPresent,
            OnlyIfValue = call.OnlyIfValue is not null || call.OnlyIfNull,
            ComparedValue = call.OnlyIfValue,
            OnlyIfRevision = call.OnlyIfRevision,
            TtlMs = call.TtlMs,
            By = call.By,
            Count = call.Kind == CallKind.Next ? call.By : 0,
            IdempotencyKey = call.SequenceKey,
            IsFast = call.IsFast,
            Mode = call.Mode,
            Permits = call.Permits,
            Fence = call.Fence is null ? null : new LockFence(call.Fence, call.Token),
        },
        Result = call.Outcome == CallOutcome.Ok ? Result(call) : OperationResult.Unconstrained,
    };

    /// <summary>
    /// The holdings of one lock. Who asks again under its name may be granted what it had asked for before: that is one
    /// holding, and nobody knows since when it was asked for.
    /// </summary>
    public static List<HistoryOperation> OfLock(IEnumerable<Call> calls) =>
        [.. calls
            .GroupBy(static call => (call.IsNamed ? call.Process : -1, call.Token, call.IsNamed ? 0 : call.CallNs))
            .Select(static same => Of(same.MinBy(static call => call.ReturnNs)!) with
        {
            CallNs = same.First().IsNamed ? 0 : same.First().CallNs,
            Result = new OperationResult
            {
                Affirmed = true,
                Token = same.Key.Token,
                UntilNs = same.Max(static call => call.UntilNs) is var until and < long.MaxValue ? until : null,
            },
        })];

    private static OperationResult Result(Call call)
    {
        if (call.Kind == CallKind.Acquire)
        {
            return new OperationResult { Affirmed = true, Token = call.Token };
        }

        if (call.Kind == CallKind.Next)
        {
            return new OperationResult { Affirmed = true, First = call.First, Last = call.Last };
        }

        string? value = call.Kind == CallKind.Increment
            ? call.Number?.ToString(CultureInfo.InvariantCulture)
            : call.FoundValue;
        return new OperationResult
        {
            Affirmed = call.Done,
            HasValue = call.Done && (call.Kind is CallKind.Increment or CallKind.Get),
            Value = call.Done ? value : null,
            Revision = call.Revision,
        };
    }
}
