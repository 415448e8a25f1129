using Kahuna.Client;
using Kahuna.Client.Elections;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Api;

/// <summary>Elections through the SDK against three real nodes.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class ElectionsTests(ThreeNodes nodes)
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(5);

    private readonly string _name = $"elections{Guid.NewGuid():n}/leader";

    [Fact]
    public async Task Candidates_lead_one_after_the_other()
    {
        await using KahunaClient client = Connect();
        ElectionClient elections = client.Elections;
        Assert.Null(await elections.GetLeaderAsync(_name));
        Leadership first = await elections.CampaignAsync(_name, "a", s_lease);
        Task<Leadership> second = elections.CampaignAsync(_name, "b", s_lease).AsTask();
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 1);
        using CancellationTokenSource cancel = new();
        Task<Leadership> withdrawn = elections.CampaignAsync(_name, "c", s_lease, cancel.Token).AsTask();
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 2);
        await cancel.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => withdrawn.WaitAsync(Wait.Longest));

        Assert.Equal(new LeaderDescription("a", first.Token), await elections.GetLeaderAsync(_name));
        Assert.Equal((_name, "a"), (first.Name, first.Candidate.AsString()));
        CancellationToken lost = first.LostToken;
        Assert.False(lost.IsCancellationRequested);
        Assert.InRange(first.Remaining, TimeSpan.FromSeconds(1), s_lease);
        Assert.True(await first.ResignAsync());
        Assert.True(lost.IsCancellationRequested);
        await first.DisposeAsync();
        Leadership next = await second.WaitAsync(Wait.Longest);
        Assert.True(next.Token > first.Token);
        Assert.Equal(new LeaderDescription("b", next.Token), await elections.GetLeaderAsync(_name));

        string key = _name[..^6] + "key";
        Assert.True((await client.KeyValues.SetAsync(key, "v", new SetOptions { Fence = next.Fence })).Applied);
        KahunaException late = await Assert.ThrowsAsync<KahunaException>(
            () => client.KeyValues.SetAsync(key, "v", new SetOptions { Fence = first.Fence }).AsTask());
        Assert.Equal(KahunaErrorCode.LockLost, late.Code);
        await next.DisposeAsync();
        Assert.Null(await elections.GetLeaderAsync(_name));
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task Observers_see_each_change_once(Durability durability)
    {
        await using KahunaClient client = Connect();
        await using KahunaClient other = Connect();
        using CancellationTokenSource end = new();
        await using IAsyncEnumerator<LeaderDescription?> seen = other.Elections.ObserveAsync(_name, durability)
            .GetAsyncEnumerator(end.Token);
        Assert.Null(await NextAsync(seen));
        Leadership a = await client.Elections.CampaignAsync(_name, "a", s_lease, durability);
        Assert.Equal(new LeaderDescription("a", a.Token), await NextAsync(seen));
        Task<Leadership> second = client.Elections.CampaignAsync(_name, "b", s_lease, durability).AsTask();
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name, durability))!.WaiterCount == 1);
        await a.DisposeAsync();
        Leadership b = await second.WaitAsync(Wait.Longest);
        Assert.Equal(new LeaderDescription("b", b.Token), await NextAsync(seen));
        Assert.Equal(new LeaderDescription("b", b.Token), await client.Elections.GetLeaderAsync(_name, durability));
        await b.DisposeAsync();
        Assert.Null(await NextAsync(seen));

        // What changes while nobody looks is not told later.
        await (await client.Elections.CampaignAsync(_name, "c", s_lease, durability)).DisposeAsync();
        Leadership d = await client.Elections.CampaignAsync(_name, KahunaValue.Null, s_lease, durability);
        Assert.Equal(new LeaderDescription(KahunaValue.Empty, d.Token), await NextAsync(seen));
        Task<bool> waiting = seen.MoveNextAsync().AsTask();
        Assert.False(waiting.IsCompleted);
        await end.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => waiting.WaitAsync(Wait.Longest));
        await d.DisposeAsync();
    }

    [Fact]
    public async Task What_cannot_be_is_said_clearly()
    {
        await using KahunaClient client = Connect();
        await RefusedAsync(
            client.Elections.CampaignAsync(_name, new byte[1025], s_lease),
            KahunaErrorCode.InvalidArgument,
            "note is 1,025 bytes");
        await RefusedAsync(
            client.Elections.CampaignAsync(_name, "c", TimeSpan.Zero),
            KahunaErrorCode.InvalidArgument,
            "Lease is 0 ms");
        await RefusedAsync(
            client.Elections.CampaignAsync("", "c", s_lease), KahunaErrorCode.InvalidArgument, "resource is empty");
        await using LockHandle permit = await client.Semaphores.AcquireAsync(_name, 2, s_lease, s_lease);
        await RefusedAsync(
            client.Elections.CampaignAsync(_name, "c", s_lease),
            KahunaErrorCode.LockModeDiffers,
            "a semaphore of 2 permits");
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private static async Task<LeaderDescription?> NextAsync(IAsyncEnumerator<LeaderDescription?> seen)
    {
        Assert.True(await seen.MoveNextAsync().AsTask().WaitAsync(Wait.Longest));
        return seen.Current;
    }

    private static async Task RefusedAsync(ValueTask<Leadership> call, KahunaErrorCode code, string words)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => call.AsTask().WaitAsync(Wait.Longest));
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
    }
}
