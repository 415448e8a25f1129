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
            OnlyIfValue = call.OnlyIfValue is not null,
            ComparedValue = call.OnlyIfValue,
            OnlyIfRevision = call.OnlyIfRevision,
            TtlMs = call.TtlMs,
            By = call.By,
            Count = call.Kind == CallKind.Next ? call.By : 0,
            IdempotencyKey = call.SequenceKey,
            IsFast = call.IsFast,
        },
        Result = call.Outcome == CallOutcome.Ok ? Result(call) : OperationResult.Unconstrained,
    };

    private static OperationResult Result(Call call)
    {
        if (call.Kind == CallKind.Next)
        {
            return new OperationResult { Affirmed = true, First = call.First, Last = call.Last };
        }

        string? value = call.Kind == CallKind.Increment ? call.Number?.ToString(CultureInfo.InvariantCulture) : call.FoundValue;
        return new OperationResult
        {
            Affirmed = call.Done,
            HasValue = call.Done && (call.Kind is CallKind.Increment or CallKind.Get),
            Value = call.Done ? value : null,
            Revision = call.Revision,
        };
    }
}
