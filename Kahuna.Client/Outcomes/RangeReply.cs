using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Outcomes;

/// <summary>The reply to a request for a page of keys: the bytes of a <see cref="RangePage"/>. Immutable.</summary>
internal readonly record struct RangeReply : IOperationResult<RangeReply>
{
    public ReadOnlyMemory<byte> Page { get; init; }

    static RangeReply IOperationResult<RangeReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Found when answer.Value is { } page => new RangeReply { Page = page.Memory },
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
