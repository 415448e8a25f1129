using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Client;

/// <summary>What a <see cref="FakeNode"/> answers. Immutable.</summary>
internal sealed record FakeReply(OutcomeStatus Status, long Revision = 0, long Number = 0, byte[]? Value = null)
{
    /// <summary>Up to where a read saw the changes; null when it did not ask.</summary>
    public ChangePoint? Point { get; init; }

    public static FakeReply Applied(long revision = 1) => new(OutcomeStatus.Applied, revision);

    public static FakeReply Found(string value, long revision = 1) =>
        new(OutcomeStatus.Found, revision, -1, System.Text.Encoding.UTF8.GetBytes(value));

    public static FakeReply NotLeader(int leader) => new(OutcomeStatus.NotLeader, 0, leader);
}
