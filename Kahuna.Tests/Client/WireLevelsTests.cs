using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using LockMode = Kahuna.Client.Locks.LockMode;

namespace Kahuna.Tests.Client;

/// <summary>What no enumeration has is refused and never taken for something else.</summary>
public sealed class WireLevelsTests
{
    [Fact]
    public void What_is_known_is_passed_on()
    {
        Assert.All(Enum.GetValues<Durability>(), static level => Assert.Equal(level.ToString(), WireLevels.Of(level).ToString()));
        Assert.All(Enum.GetValues<LockMode>(), static mode => Assert.Equal(mode.ToString(), WireLevels.Of(mode).ToString()));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(-1)]
    [InlineData(257)]
    [InlineData(int.MinValue + 1)]
    public async Task What_is_not_known_is_refused(int number)
    {
        Assert.Equal(CommandDurability.Unset, WireLevels.Of((Durability)number));
        Assert.Equal(Kahuna.Client.Wire.Commands.LockMode.Unset, WireLevels.Of((LockMode)number));
        FakeCluster cluster = new();
        cluster[1].Answer = static request => request.Bytes[1] == 0 ? new FakeReply(OutcomeStatus.InvalidArgument) : FakeReply.Applied();
        await using KahunaClient client = await cluster.ConnectedAsync();
        KahunaException refusal = await Assert.ThrowsAsync<KahunaException>(() => client.KeyValues.SetAsync("k", "v", new SetOptions { Durability = (Durability)number }).AsTask());
        Assert.Equal(KahunaErrorCode.InvalidArgument, refusal.Code);
        refusal = await Assert.ThrowsAsync<KahunaException>(() => client.Locks.TryAcquireAsync("l", TimeSpan.FromSeconds(1), new() { Mode = (LockMode)number }).AsTask());
        Assert.Equal(KahunaErrorCode.InvalidArgument, refusal.Code);
    }
}
