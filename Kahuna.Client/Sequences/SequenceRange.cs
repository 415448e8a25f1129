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
            Int128 step = Count > 1 ? ((Int128)Last - First) / (Count - 1) : 0;
            for (long i = 0; i < Count; i++)
            {
                yield return (long)(First + (i * step));
            }
        }
    }

    static SequenceRange IOperationResult<SequenceRange>.From(Operation answered) => answered.ReplyStatus switch
    {
        OutcomeStatus.Applied => new SequenceRange { First = answered.ReplyNumber, Last = answered.ReplyRevision, Count = answered.Number },
        OutcomeStatus.NotFound => throw Failures.NoSequence(answered),
        OutcomeStatus.Exhausted => throw Failures.Exhausted(answered),
        _ => throw Failures.UnexpectedStatus(answered),
    };
}
