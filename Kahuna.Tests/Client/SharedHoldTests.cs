using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>Who would wait for itself is told so.</summary>
public sealed class SharedHoldTests : IAsyncLifetime
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(1);
    private static readonly LockOptions s_shared = new() { Mode = LockMode.Shared };

    private readonly FakeCluster _cluster = new();
    private KahunaClient _client = null!;

    public async Task InitializeAsync()
    {
        _cluster[1].Answer = static request => new FakeReply(OutcomeStatus.Applied, 7, 50_000 + request.LeaseMs);
        _client = await _cluster.ConnectedAsync();
    }

    public async Task DisposeAsync() => await _client.DisposeAsync();

    [Fact]
    public async Task Who_holds_a_lock_shared_is_refused_when_it_asks_for_it_exclusively()
    {
        LockHandle shared = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, s_shared));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(AskAsync);
        Assert.Equal((KahunaErrorCode.LockModeDiffers, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Equal(
            "The caller holds the lock \"a\" shared, under token 7: to acquire it exclusively would deadlock. "
                + "Release the shared one first.",
            failure.Message);
        await Assert.ThrowsAsync<KahunaException>(CallAsync);

        // Another lock, another level, another flow, and after it was given back.
        await Wait.ForAsync(_client.Locks.AcquireAsync("b", s_lease, s_lease));
        await Wait.ForAsync(
            _client.Locks.AcquireAsync("a", s_lease, s_lease, new LockOptions { Durability = Durability.Ephemeral }));
        Task<LockHandle> other;
        using (ExecutionContext.SuppressFlow())
        {
            other = Task.Run(AskAsync);
        }

        await other.WaitAsync(Wait.Longest);
        await Wait.ForAsync(shared.ReleaseAsync());
        await AskAsync();
    }

    [Fact]
    public async Task Who_holds_it_shared_may_ask_for_it_shared_and_only_the_last_of_them_frees_the_way()
    {
        LockHandle first = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, s_shared));
        LockHandle second = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, s_shared));
        await Wait.ForAsync(second.ReleaseAsync());
        await Assert.ThrowsAsync<KahunaException>(AskAsync);
        await Wait.ForAsync(first.ReleaseAsync());
        await AskAsync();
    }

    [Fact]
    public async Task Who_holds_a_lock_shared_is_refused_when_it_campaigns_for_it()
    {
        LockHandle shared = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, s_shared));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(CampaignAsync);
        Assert.Equal((KahunaErrorCode.LockModeDiffers, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        await Wait.ForAsync(_client.Elections.CampaignAsync("a", "me", s_lease, Durability.Ephemeral));
        await Wait.ForAsync(shared.ReleaseAsync());
        Assert.Equal(7, (await CampaignAsync()).Token.Value);
    }

    private Task<Kahuna.Client.Elections.Leadership> CampaignAsync() =>
        Wait.ForAsync(_client.Elections.CampaignAsync("a", "me", s_lease));

    private Task<LockHandle> AskAsync() => Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease));

    private async Task CallAsync()
    {
        await Task.Yield();
        await AskAsync();
    }
}
