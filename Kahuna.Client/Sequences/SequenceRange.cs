using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>Values that were taken from a sequence: from the first to the last, both included. Immutable.</summary>
public readonly record struct SequenceRange : IOperationResult<SequenceRange>
{
    /// <summary>The first value.</summary>
    public long First { get; init; }

    /// <summary>The last value; below <see cref="First"/> when the sequence counts down.</summary>
    public long Last { get; init; }

    /// <summary>How many values there are; 1 or more.</summary>
    public long Count { get; init; }

    /// <summary>The values in their order.</summary>
    public IEnumerable<long> Values
    {
        get
        {
            for (long i = 0; i < Count; i++)
            {
                yield return (long)(First + ((Int128)i * Step));
            }
        }
    }

    /// <summary>From one value to the next; 0 where there is only one.</summary>
    internal long Step => Count > 1 ? (long)(((Int128)Last - First) / (Count - 1)) : 0;

    static SequenceRange IOperationResult<SequenceRange>.From(Operation answered) => Of(answered);

    internal static SequenceRange Of(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied => new SequenceRange { First = answered.ReplyNumber, Last = answered.ReplyRevision, Count = answered.Number },
        OutcomeStatus.NotFound => throw Failures.NoSequence(answered),
        OutcomeStatus.Exhausted => throw Failures.Exhausted(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
