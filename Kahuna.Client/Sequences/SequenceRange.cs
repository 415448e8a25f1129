using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>Consecutive values that were taken from a sequence, both ends included. Immutable.</summary>
public readonly record struct SequenceRange : IOperationResult<SequenceRange>
{
    /// <summary>The first value.</summary>
    public long First { get; init; }

    /// <summary>The last value; below <see cref="First"/> in a descending sequence.</summary>
    public long Last { get; init; }

    /// <summary>The number of values; 1 or more.</summary>
    public long Count { get; init; }

    /// <summary>The values in order.</summary>
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

    /// <summary>The step from one value to the next; 0 if there is only one.</summary>
    internal long Step => Count > 1 ? (long)(((Int128)Last - First) / (Count - 1)) : 0;

    static SequenceRange IOperationResult<SequenceRange>.From(Answer answer) => Of(answer);

    internal static SequenceRange Of(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Applied =>
            new SequenceRange { First = answer.ReplyNumber, Last = answer.Revision.Value, Count = answer.Number },
        OutcomeStatus.NotFound => throw OperationErrors.NoSequence(answer),
        OutcomeStatus.Exhausted => throw OperationErrors.Exhausted(answer),
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
