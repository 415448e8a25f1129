using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>What came of asking for a block of values: the values, or how many fewer are left. Immutable.</summary>
internal readonly record struct SequenceTake : IOperationResult<SequenceTake>
{
    /// <summary>The values; null when there were not so many, and none was taken.</summary>
    public SequenceRange? Range { get; init; }

    /// <summary>Values that were left, 1 or more, where there is no range.</summary>
    public long Left { get; init; }

    static SequenceTake IOperationResult<SequenceTake>.From(Operation answered) =>
        answered is { ReplyStatus: OutcomeStatus.Exhausted, ReplyNumber: > 0 } ? new SequenceTake { Left = answered.ReplyNumber } : new SequenceTake { Range = SequenceRange.Of(answered) };
}
