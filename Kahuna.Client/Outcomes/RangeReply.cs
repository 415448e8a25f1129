using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Outcomes;

/// <summary>The reply to a request for a page of keys: the bytes of a <see cref="RangePage"/>. Immutable.</summary>
internal readonly record struct RangeReply : IOperationResult<RangeReply>
{
    public ReadOnlyMemory<byte> Page { get; init; }

    /// <summary>Up to where in its group's changes the page shows everything; null when that was not asked.</summary>
    public ChangePoint? Point { get; init; }

    /// <summary>Names the cluster that answered.</summary>
    public ulong Cluster { get; init; }

    static RangeReply IOperationResult<RangeReply>.From(Answer answer) => answer.Status switch
    {
        OutcomeStatus.Found when answer.Value is { } page => new RangeReply
        {
            Page = page.Memory,
            Point = answer.Point,
            Cluster = answer.Cluster,
        },
        _ => throw OperationErrors.UnexpectedStatus(answer),
    };
}
